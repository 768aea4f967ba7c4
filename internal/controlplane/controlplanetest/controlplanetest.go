// Package controlplanetest starts a real control plane for tests.
//
// All tests of a package usually share one, each in a namespace of its own:
//
//	var controlPlane = controlplanetest.Shared(controlplane.WithControllers())
//
//	func TestSomething(t *testing.T) {
//		cp := controlPlane(t)
//		namespace := controlplanetest.Namespace(t, cp)
//		...
//	}
//
// No TestMain is needed: a shared control plane starts with the first test that asks for it and ends with the test
// process, however that ends. Under -short these tests are skipped.
package controlplanetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/controlplane"
)

// Start starts a control plane for one test. It is stopped when the test ends.
func Start(t testing.TB, options ...controlplane.Option) *controlplane.ControlPlane {
	t.Helper()
	skipIfShort(t)
	cp, err := controlplane.Start(t.Context(), options...)
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

// Shared returns a function that returns the same control plane to all tests of a package.
func Shared(options ...controlplane.Option) func(testing.TB) *controlplane.ControlPlane {
	start := sync.OnceValues(func() (*controlplane.ControlPlane, error) {
		return controlplane.Start(context.Background(), options...)
	})
	return func(t testing.TB) *controlplane.ControlPlane {
		t.Helper()
		skipIfShort(t)
		cp, err := start()
		if err != nil {
			t.Fatal(err)
		}
		return cp
	}
}

// Namespace creates a namespace for one test, in which pods can be created, and returns its name. The namespace is
// deleted when the test ends.
func Namespace(t testing.TB, cp *controlplane.ControlPlane) string {
	t.Helper()
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	name, err := cp.CreateNamespace(t.Context(), namePrefix(t))
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
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

// namePrefix returns the test's name in the characters of a namespace's name.
func namePrefix(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return strings.Trim(name[:min(len(name), 40)], "-") + "-"
}
