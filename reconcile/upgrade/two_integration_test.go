package upgrade_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// If two controllers reconcile the same object, the plan counts it once. The object is skipped only if both
// controllers skip it.
func TestPlanOfTwoControllers(t *testing.T) {
	e := newEnv(t)
	e.create(t, newBudget("blue"), newBudget("green"), newBudget("red"))
	secretOf := func(o *budget) *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.Name}} }
	except := func(name string) func(*budget) bool {
		return func(o *budget) bool { return o.Name != name && o.Name != "red" }
	}
	got, err := planOf(t.Context(), e.access, []string{e.namespace}, "text", func(mgr ctrl.Manager) error {
		if err := reconcile.For(mgr, named("settings", ownedresources.Build(settings("one")))).WithFilter(except("green")).WithoutStatus().Complete(); err != nil {
			return err
		}
		return reconcile.For(mgr, named("secrets", ownedresources.Build(secretOf))).WithFilter(except("")).WithoutStatus().Complete()
	})
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Contains(t, got, "PodDisruptionBudget: 2 of 3 change, 1 are skipped.\n2 × Secret is created\n1 × ConfigMap is created\n")
}

// A child moves from one controller to another. What happens to the child depends on which controller reconciles
// first.
func TestPlanOfChildThatMovesToAnotherController(t *testing.T) {
	e := newEnv(t)
	e.create(t, newBudget("web"))
	e.run(t, "web", steps{named("one", ownedresources.Build(settings("one")))})
	e.beside = func() steps { return steps{named("two", ownedresources.Build(settings("one")))} }
	got, err := e.planJSON(t, steps{named("one", noSettings())})
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Len(t, got.Changes, 2)
	require.Equal(t, "delete", got.Changes[0].Action)
	require.Equal(t, "another controller desires it: if that one is first, it is changed, and nothing else happens to it", got.Changes[0].Note)
	require.Equal(t, "apply", got.Changes[1].Action)

	before := e.snapshot(t)
	e.run(t, "web", steps{named("one", noSettings())}, e.beside())
	require.Equal(t, map[string][]string{"recreate ConfigMap web": nil}, happened(before, e.snapshot(t)), "the one that deletes was first")
}
