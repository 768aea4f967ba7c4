package reconcile_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
)

// After our read and before our write, somebody else writes a condition.
func TestConditionOfAnotherWriter(t *testing.T) {
	w := newEnv(t)
	passes := 0
	interfere := func(ctx context.Context, _ client.Client, b *budget) error {
		if passes++; passes > 1 {
			return nil
		}
		theirs := &budget{}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(b), theirs); err != nil {
			return err
		}
		theirs.Status.CurrentHealthy = 5
		theirs.Status.Conditions = []metav1.Condition{{Type: "Theirs", Status: "True", Reason: "Theirs", LastTransitionTime: metav1.Now()}}
		return w.client.Status().Update(ctx, theirs)
	}
	require.NoError(t, reconcile.For[*budget](w.mgr, reconcile.Named("interfere", reconcile.Func(interfere))).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "both conditions", func(b *budget) bool {
		return conditions.IsTrue(b.Status.Conditions, "Theirs") && conditions.IsTrue(b.Status.Conditions, "Ready")
	})
	require.EqualValues(t, 5, b.Status.CurrentHealthy)
	require.Equal(t, []string{"PATCH poddisruptionbudgets/status", "PATCH poddisruptionbudgets/status"}, w.count.Sent(),
		"one that lost, and one that did not")
}

// The object is deleted during a pass, and another object with its name is created before the status is written.
func TestStatusOfRecreatedObject(t *testing.T) {
	w := newEnv(t)
	b := w.create(t, "a")
	namesake := &budget{}
	r := reconcile.New(w.client, reconcile.Named("one", reconcile.Func(func(ctx context.Context, _ client.Client, b *budget) error {
		if err := w.client.Delete(ctx, b.DeepCopy()); err != nil {
			return err
		}
		namesake = w.create(t, "a")
		b.Status.ExpectedPods = 7
		return nil
	})))
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(b), namesake))
	require.Zero(t, namesake.Status)
}
