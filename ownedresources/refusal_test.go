package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/report"
)

// A child is deleted to be recreated, and another writer creates the old child again. The next recreation is delayed.
// Other children of the owner are pruned in that time.
func TestPruneWhileARecreationIsDelayed(t *testing.T) {
	w := newEnvInMemory(t)
	name, selector := "former", "web"
	set := Ensure(
		Build(func(*Shop) *appsv1.Deployment {
			d := w.Deployment()
			d.Spec.Selector.MatchLabels = map[string]string{"app": selector}
			d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
			return d
		}).Recreate(),
		Build(func(*Shop) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}),
	)
	reconcile := func() string {
		var wait *owned.WaitingError
		require.ErrorAs(t, set.Reconcile(t.Context(), w.Client, w.Owner), &wait)
		return ownedtest.ReasonOf(wait)
	}
	reconcile()
	old := &appsv1.Deployment{}
	w.Live(t, old)
	selector = "other"
	for reason := ""; reason != report.ReasonWriteLoop; {
		if reason = reconcile(); reason == apply.ReasonRecreating {
			back := old.DeepCopy()
			back.UID, back.ResourceVersion = "", ""
			require.NoError(t, w.Other.Create(t.Context(), back))
		}
	}
	name = "present"
	require.Equal(t, report.ReasonWriteLoop, reconcile())
	require.False(t, w.Exists(t, namedConfigMap("", "former")))
	require.True(t, w.Exists(t, namedConfigMap("", "present")))
}
