package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile"
)

// story is a life in which everything happens that the operator answers to. Each act is a write of somebody else.
var story = []struct {
	name string
	act  func(t *testing.T, u *user)
}{
	{"created", func(t *testing.T, u *user) { u.create(t, "cache", 2) }},
	{"a pod comes", func(t *testing.T, u *user) { createPod(t, u, "cache-b") }},
	{"another pod comes", func(t *testing.T, u *user) { createPod(t, u, "cache-a") }},
	{"a pod becomes ready", func(t *testing.T, u *user) {
		pod := &corev1.Pod{}
		require.NoError(t, u.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "cache-a"}, pod))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		require.NoError(t, u.Status().Update(t.Context(), pod))
	}},
	{"scaled", func(t *testing.T, u *user) {
		change(t, u, u.memcached("cache", 0), func(m *cachev1alpha1.Memcached) { m.Spec.Size = 4 })
	}},
	{"given a limit", func(t *testing.T, u *user) {
		change(t, u, u.memcached("cache", 0), func(m *cachev1alpha1.Memcached) {
			m.Spec.Resources = &corev1.ResourceRequirements{}
			m.Spec.MaxConnections = 7
		})
	}},
	{"that taken away", func(t *testing.T, u *user) {
		change(t, u, u.memcached("cache", 0), func(m *cachev1alpha1.Memcached) { m.Spec.Resources = nil })
	}},
	{"drifted", func(t *testing.T, u *user) {
		change(t, u, u.deployment("cache"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "memcached:1.4" })
	}},
	{"Service deleted", func(t *testing.T, u *user) { require.NoError(t, u.Delete(t.Context(), u.service("cache"))) }},
	{"Deployment deleted", func(t *testing.T, u *user) { require.NoError(t, u.Delete(t.Context(), u.deployment("cache"))) }},
	{"a pod goes", func(t *testing.T, u *user) {
		require.NoError(t, u.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "cache-b"}},
			client.GracePeriodSeconds(0)))
	}},
}

func createPod(t *testing.T, u *user, name string) {
	t.Helper()
	require.NoError(t, u.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name, Labels: map[string]string{"app": "memcached", "memcached_cr": "cache"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached"}}},
	}))
}

// fault is what goes wrong: the process ends at a write, or what is read is some writes old.
type fault struct {
	crashAt   int
	committed bool
	lag       int
}

func (f fault) String() string {
	switch {
	case f.lag > 0:
		return fmt.Sprintf("reads %d writes old", f.lag)
	case f.committed:
		return fmt.Sprintf("crash after write %d", f.crashAt)
	default:
		return fmt.Sprintf("crash before write %d", f.crashAt)
	}
}

// tell plays the story with a fault and gives the final state, and how many writes the operator tried.
func tell(t *testing.T, f fault) (final string, writes int) {
	t.Helper()
	u := newUser(t, apiServer(t))
	history := operatortest.NewHistory(u.WithWatch, map[string]client.IndexerFunc{controller.PodIndex: controller.IndexPod})
	u.WithWatch = history.Client()
	process := &operatortest.Process{History: history, CrashAt: f.crashAt, Committed: f.committed}
	reconciler := reconcile.New(process.Client(), controller.Steps()...)
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: u.namespace, Name: "cache"}}

	for _, chapter := range story {
		chapter.act(t, u)
		process.Lag = f.lag
		for passes, quiet := 0, false; !quiet; passes++ {
			require.Less(t, passes, 20, "%s: it does not become quiet", chapter.name)
			before := history.Len()
			_, err := reconciler.Reconcile(t.Context(), request)
			require.NoError(t, err)
			switch {
			case process.Crashed:
				process = &operatortest.Process{History: history}
				reconciler = reconcile.New(process.Client(), controller.Steps()...)
			case history.Len() > before:
				process.Lag = f.lag
			case process.Lag > 0:
				process.Lag-- // the cache catches up
			default:
				quiet = true
			}
		}
	}
	return describe(t, history), process.Writes
}

// describe gives the state without what differs from run to run.
func describe(t *testing.T, history *operatortest.History) string {
	t.Helper()
	var all strings.Builder
	for _, obj := range history.Now() {
		owned := ""
		if ref := metav1.GetControllerOf(obj); ref != nil {
			owned = ref.Kind + " " + ref.Name
		}
		fmt.Fprintf(&all, "%T %s of %q, labels %v\n", obj, obj.GetName(), owned, obj.GetLabels())
		switch obj := obj.(type) {
		case *appsv1.Deployment:
			writeJSON(t, &all, obj.Spec)
		case *corev1.Service:
			writeJSON(t, &all, obj.Spec)
		case *cachev1alpha1.Memcached:
			for i := range obj.Status.Conditions {
				obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
				obj.Status.Conditions[i].Message = strings.ReplaceAll(obj.Status.Conditions[i].Message, obj.Namespace, "namespace")
			}
			writeJSON(t, &all, obj.Status)
		}
	}
	return all.String()
}

// Whenever the operator crashes, and however old what it reads: in the end everything is as if nothing had happened.
func TestFaults(t *testing.T) {
	want, writes := tell(t, fault{})
	t.Logf("%d writes; in the end:\n%s", writes, want)
	for _, part := range []string{`"nodes":["cache-a"]`, `*v1.Deployment cache of "Memcached cache"`, `"replicas":4`, `*v1.Service cache of "Memcached cache"`} {
		require.Contains(t, want, part, "without a fault all is as wanted")
	}
	var faults []fault
	for lag := 1; lag <= 3; lag++ {
		faults = append(faults, fault{lag: lag})
	}
	for n := 1; n <= writes; n++ {
		faults = append(faults, fault{crashAt: n}, fault{crashAt: n, committed: true})
	}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			got, _ := tell(t, f)
			assert.Equal(t, want, got)
		})
	}
}

func writeJSON(t *testing.T, to *strings.Builder, v any) {
	t.Helper()
	encoded, err := json.Marshal(v)
	require.NoError(t, err)
	fmt.Fprintf(to, "\t%s\n", encoded)
}
