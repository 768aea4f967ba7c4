package controlplane

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is the timeout of a test that waits for an event, such as with testify's Eventually: 5 minutes. It is long, because the machine
// may run other tests at the same time. A test that passes never waits so long.
//
// A test must not use a timeout to show that something did not happen. Instead it waits for another event that comes later, such as the
// pass over an object that was created later.
const Patience = 5 * time.Minute

// New starts a control plane for one test. If it does not start, the test fails. Under -short the test is skipped. When the test ends, the
// control plane is stopped, after the cleanups that the test registers later.
func New(t testing.TB, options Options) *ControlPlane {
	t.Helper()
	skipIfShort(t)
	cp, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Shared returns a function that returns the same control plane to all tests of a package. The control plane starts when
// the first test calls the function. It is stopped when the test process ends, however that ends, so no TestMain is
// needed. If it does not start, each test that calls the function fails. Under -short each is skipped.
//
// Tests that share a control plane work in a [Namespace] each.
func Shared(options Options) func(testing.TB) *ControlPlane {
	start := sync.OnceValues(func() (*ControlPlane, error) {
		return Start(context.Background(), options)
	})
	return func(t testing.TB) *ControlPlane {
		t.Helper()
		skipIfShort(t)
		cp, err := start()
		if err != nil {
			t.Fatal(err)
		}
		return cp
	}
}

// Namespace creates a namespace for one test, in which pods can be created. It returns its name, which begins with the name of the test.
// When the test ends, the namespace is deleted. Namespace does not wait until it is gone.
func Namespace(t testing.TB, cp *ControlPlane) string {
	t.Helper()
	name, err := cp.CreateNamespace(t.Context(), namePrefix(t))
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Cleanup(func() {
		if err := cp.client.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
	return name
}

func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane; run without -short")
	}
}

// namePrefix returns the test's name as the beginning of a namespace's name. Characters that such a name cannot have
// become hyphens.
func namePrefix(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return strings.Trim(name[:min(len(name), 40)], "-") + "-"
}
