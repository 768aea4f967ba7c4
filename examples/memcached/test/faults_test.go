package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile"
)

// actions cover everything that the operator reacts to.
func actions(u *user) []operatortest.Action {
	return []operatortest.Action{
		{Name: "created", Do: func(t *testing.T) { u.create(t, "cache", 2) }},
		{Name: "a pod comes", Do: func(t *testing.T) { createPod(t, u, "cache-b") }},
		{Name: "another pod comes", Do: func(t *testing.T) { createPod(t, u, "cache-a") }},
		{Name: "a pod becomes ready", Do: func(t *testing.T) {
			pod := operatortest.Live(t, u, &corev1.Pod{ObjectMeta: u.Meta("cache-a")})
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			require.NoError(t, u.Status().Update(t.Context(), pod))
		}},
		{Name: "scaled", Do: func(t *testing.T) {
			u.set(t, "cache", func(s *cachev1.MemcachedSpec) { s.Size = 4 })
		}},
		{Name: "given a limit", Do: func(t *testing.T) {
			operatortest.Change(t, u, u.memcached("cache", 0), func(m *cachev1.Memcached) {
				m.Spec.Resources = &cachev1.ResourceRequirements{}
				m.Spec.MaxConnections = 7
			})
		}},
		{Name: "that taken away", Do: func(t *testing.T) {
			u.set(t, "cache", func(s *cachev1.MemcachedSpec) { s.Resources = nil })
		}},
		{Name: "drifted", Do: func(t *testing.T) {
			operatortest.Change(t, u, u.Deployment("cache"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "memcached:1.4" })
		}},
		{Name: "Service deleted", Do: func(t *testing.T) { require.NoError(t, u.Delete(t.Context(), u.Service("cache"))) }},
		{Name: "Deployment deleted", Do: func(t *testing.T) { require.NoError(t, u.Delete(t.Context(), u.Deployment("cache"))) }},
		{Name: "a pod goes", Do: func(t *testing.T) {
			require.NoError(t, u.Delete(t.Context(), &corev1.Pod{ObjectMeta: u.Meta("cache-b")},
				client.GracePeriodSeconds(0)))
		}},
	}
}

// byReplicaSet returns the reference of a pod to a ReplicaSet of the Deployment of a name.
func byReplicaSet(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-5d8c", UID: "set", Controller: new(true)}}
}

func createPod(t *testing.T, u *user, name string) {
	t.Helper()
	require.NoError(t, u.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: name, Labels: map[string]string{"app": "memcached", "memcached_cr": "cache"}, OwnerReferences: byReplicaSet("cache")},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached"}}},
	}))
}

// run runs the scenario with a fault. It returns the final state, and the number of writes that the operator tried.
func run(t *testing.T, f operatortest.Fault) (final string, writes int) {
	t.Helper()
	u := newUser(t, apiServer(t))
	history := operatortest.NewHistory(u.User, map[string]client.IndexerFunc{controller.PodIndex: controller.IndexPod})
	scenario := operatortest.Scenario{
		Start:   func(c client.Client) ctrlreconcile.Reconciler { return reconcile.New(c, controller.Steps()...) },
		Key:     client.ObjectKey{Namespace: u.Namespace, Name: "cache"},
		Actions: actions(u),
	}
	writes = scenario.Run(t, history, f)
	return history.Describe(t, outcome), writes
}

// outcome returns the part of an object that is the same after every run.
func outcome(obj client.Object) any {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Spec
	case *corev1.Service:
		return obj.Spec
	case *cachev1.Memcached:
		for i := range obj.Status.Conditions {
			obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		return obj.Status
	}
	return nil
}

// TestFaults runs the scenario with crashes at every write and with stale reads: the final state is always the same.
func TestFaults(t *testing.T) {
	t.Parallel()
	want, writes := run(t, operatortest.Fault{})
	t.Logf("%d writes; in the end:\n%s", writes, want)
	for _, part := range []string{`"nodes":["cache-a"]`, `*v1.Deployment cache of "Memcached cache"`, `"replicas":4`, `*v1.Service cache of "Memcached cache"`} {
		require.Contains(t, want, part, "without a fault all is as wanted")
	}
	operatortest.EachFault(t, writes, func(t *testing.T, f operatortest.Fault) {
		got, _ := run(t, f)
		assert.Equal(t, want, got)
	})
}
