package reconcile

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
)

type unknown struct{ corev1.Pod }

func TestValidateSteps(t *testing.T) {
	tests := map[string]struct {
		steps []NamedStep[*budget]
		says  string
	}{
		"None":            {nil, "needs a step"},
		"NoName":          {[]NamedStep[*budget]{Named("", returning(nil))}, "needs a name"},
		"SameName":        {[]NamedStep[*budget]{Named("a", returning(nil)), Named("a", returning(nil))}, `two steps are named "a"`},
		"SameCondition":   {[]NamedStep[*budget]{Named("a", returning(nil), Reporting("X")), Named("b", returning(nil), Reporting("X"))}, `two steps report the condition "X"`},
		"KindNotKnown":    {[]NamedStep[*budget]{Named("a", returning(nil), Watching(&unknown{}, nil))}, "add its types to the manager's scheme"},
		"ConditionNoType": {[]NamedStep[*budget]{Named("a", returning(nil), Reporting("not good"))}, `condition "not good", which is no valid type`},
		"ConditionTaken":  {[]NamedStep[*budget]{Named("a", returning(nil), Reporting("Ready"))}, `condition "Ready", which the pass sets itself`},
		"NameTaken":       {[]NamedStep[*budget]{Named("Stalled", returning(nil))}, `named "Stalled", which the pass uses itself`},
		"LiteralNotMade":  {[]NamedStep[*budget]{{}}, "make it with Named"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(fake.NewFakeClient(), tc.steps...).Reconcile(t.Context(), request)
			require.ErrorContains(t, err, tc.says)
			require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil), "no backoff heals it")
		})
	}
	_, err := New(fake.NewFakeClient(), Named("a", StepFunc[client.Object](nil))).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "give a pointer to an API type")

	for says, typ := range map[string]reflect.Type{
		"is not a plain struct": reflect.TypeFor[struct{ Status *budget }](),
		"embeds the pointer": reflect.TypeFor[struct {
			Status struct {
				*policyv1.PodDisruptionBudgetStatus
			}
		}](),
	} {
		_, err := newStatusType(typ, conditions.Standard(), nil)
		require.ErrorContains(t, err, says)
	}
}

func TestValidateStepsFinalizers(t *testing.T) {
	cleaner := cleaning{returning(nil), returning(nil)}
	tests := map[string]struct {
		steps []NamedStep[*budget]
		says  string
	}{
		"CleanupWithoutAFinalizer": {[]NamedStep[*budget]{Named("a", cleaner)}, `step "a" cleans up: name its finalizer`},
		"FinalizerWithoutACleanup": {[]NamedStep[*budget]{Named("a", returning(nil), Finalizer("example.com/a"))}, "nothing would ever remove it"},
		"LimitWithoutACleanup":     {[]NamedStep[*budget]{Named("a", returning(nil), GiveUpCleanupAfter(time.Hour))}, "nothing would ever remove it"},
		"OneForTwo":                {[]NamedStep[*budget]{Named("a", cleaner, Finalizer("example.com/a")), Named("b", cleaner, Finalizer("example.com/a"))}, `two steps have the finalizer "example.com/a"`},
		"NoDomain":                 {[]NamedStep[*budget]{Named("a", cleaner, Finalizer("orphan"))}, `invalid finalizer "orphan": a domain of yours must stand before it`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(fake.NewFakeClient(), tc.steps...).Reconcile(t.Context(), request)
			require.ErrorContains(t, err, tc.says)
			require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil))
		})
	}
}

func TestValidateStepsReferences(t *testing.T) {
	c := fake.NewFakeClient()
	_, err := New(c, Named("one", returning(nil), Referencing(&corev1.Secret{}, func(*corev1.Pod) []types.NamespacedName { return nil }))).
		Reconcile(t.Context(), request)
	require.ErrorContains(t, err, `step "one" declares references of *v1.Pod, but it is a step of *v1.PodDisruptionBudget`)
	require.NoError(t, New(c, Named("one", returning(nil), Referencing(&corev1.Secret{}, func(client.Object) []types.NamespacedName { return nil }))).prepare(),
		"an interface that T has is as good")
}
