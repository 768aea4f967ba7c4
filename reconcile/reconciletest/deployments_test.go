package reconciletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestDeployments(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil }
	})
	s.Objects = []client.Object{deployment("web")}
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		podNames := func() (names []string) {
			var pods corev1.PodList
			require.NoError(t, env.List(t.Context(), &pods))
			for _, p := range pods.Items {
				set := &appsv1.ReplicaSet{}
				require.NoError(t, env.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: metav1.GetControllerOf(&p).Name}, set))
				assert.True(t, metav1.IsControlledBy(set, get(t, env, deployment("web"))))
				names = append(names, p.Name)
			}
			return names
		}
		before := podNames()
		require.Len(t, before, 1)
		assert.EqualValues(t, 1, get(t, env, deployment("web")).Status.ReadyReplicas)

		d := get(t, env, deployment("web"))
		d.Spec.Replicas = new(int32(2))
		require.NoError(t, env.Update(t.Context(), d))
		env.Do(reconciletest.Wait(time.Second))
		require.Len(t, podNames(), 2)
		assert.Contains(t, podNames(), before[0], "scaling replaces nothing")

		d = get(t, env, deployment("web"))
		d.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		require.NoError(t, env.Update(t.Context(), d))
		env.Do(reconciletest.Wait(time.Second))
		require.Len(t, podNames(), 2)
		assert.NotContains(t, podNames(), before[0], "a new template replaces all")
		d = get(t, env, deployment("web"))
		assert.EqualValues(t, 2, d.Status.ReadyReplicas)
		assert.Equal(t, d.Generation, d.Status.ObservedGeneration)

		env.Do(reconciletest.Delete(deployment("web")))
		assert.Empty(t, podNames(), "the garbage collector deletes them")
	})
}

func get[T client.Object](t *testing.T, env *reconciletest.Env, obj T) T {
	t.Helper()
	require.NoError(t, env.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}
