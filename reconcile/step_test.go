package reconcile

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/step"
)

type unknown struct{ corev1.Pod }

// conditionStep is a step that sets its own condition. Ready does not depend on that condition.
type conditionStep struct{ condition string }

func (n conditionStep) Hooks() step.Hooks {
	hooks := noHooks()
	hooks.ConditionTypes = func() []string { return []string{n.condition} }
	return hooks
}

func (n conditionStep) Reconcile(ctx context.Context, _ client.Client, _ *budget) error {
	passcontext.FromContext(ctx).SetCondition(metav1.Condition{Type: n.condition, Status: metav1.ConditionFalse, Reason: "KindNotServed", Message: "m"})
	return nil
}

// renamed is a step that stores its name in the cluster, as a set of children does, and has a cleanup.
type renamed struct {
	stepFunc[*budget]
	name     string
	former   []string
	cleanups []string // the finalizers of the object at each cleanup
}

func (r *renamed) SetName(name string)            { r.name = name }
func (r *renamed) SetFormerNames(names ...string) { r.former = names }
func (r *renamed) FinalizerName() string          { return record.Finalizer(r.name) }
func (r *renamed) FormerFinalizerNames() (all []string) {
	for _, name := range r.former {
		all = append(all, record.Finalizer(name))
	}
	return all
}

func (r *renamed) Finalize(_ context.Context, _ client.Client, b *budget) error {
	r.cleanups = append(r.cleanups, strings.Join(b.Finalizers, " "))
	return nil
}

func TestValidateSteps(t *testing.T) {
	cleaner := cleaning{returning(nil), returning(nil)}
	tests := map[string]struct {
		reason string
		steps  []NamedStep[*budget]
		want   string // a part of the error
	}{
		"NoSteps": {
			reason: "a reconciler without steps would do nothing",
			want:   "needs a step",
		},
		"NoName": {
			reason: "logs, metrics and events show the name",
			steps:  []NamedStep[*budget]{Named("", returning(nil))},
			want:   "needs a name",
		},
		"DuplicateName": {
			reason: "the warnings of a step are remembered by its name",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)), Named("a", returning(nil))},
			want:   `two steps are named "a"`,
		},
		"DuplicateCondition": {
			reason: "two steps would overwrite the condition in every pass",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)).Reporting("X"), Named("b", returning(nil)).Reporting("X")},
			want:   `two steps report the condition "X"`,
		},
		"InvalidConditionOfStep": {
			reason: "the API server would refuse the status in every pass",
			steps:  []NamedStep[*budget]{Named("a", conditionStep{"not good"})},
			want:   `step "a" sets the condition "not good", which is no valid type`,
		},
		"ReservedConditionOfStep": {
			reason: "the pass sets Ready itself",
			steps:  []NamedStep[*budget]{Named("a", conditionStep{"Ready"})},
			want:   `step "a" sets the condition "Ready", which the pass sets itself`,
		},
		"ConditionOfStepIsReported": {
			reason: "it would overwrite the outcome",
			steps:  []NamedStep[*budget]{Named("a", conditionStep{"X"}).Reporting("X")},
			want:   `step "a" sets the condition "X", which is that of a step`,
		},
		"DuplicateConditionOfSteps": {
			reason: "two steps would overwrite the condition in every pass",
			steps:  []NamedStep[*budget]{Named("a", conditionStep{"X"}), Named("b", conditionStep{"X"})},
			want:   `step "b" sets the condition "X", which is that of a step`,
		},
		"UnknownKind": {
			reason: "a kind that the scheme does not have cannot be watched",
			steps:  []NamedStep[*budget]{Named("a", returning(nil), Watching(&unknown{}, nil))},
			want:   "add its types to the manager's scheme",
		},
		"InvalidCondition": {
			reason: "the API server would refuse the status in every pass",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)).Reporting("not good")},
			want:   `condition "not good", which is no valid type`,
		},
		"ReservedCondition": {
			reason: "the pass sets Ready itself",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)).Reporting("Ready")},
			want:   `condition "Ready", which the pass sets itself`,
		},
		"ReservedName": {
			reason: "the message of Ready could not tell the step from the condition Stalled",
			steps:  []NamedStep[*budget]{Named("Stalled", returning(nil))},
			want:   `named "Stalled", which the pass uses itself`,
		},
		"NotMadeByNamed": {
			reason: "the zero value has neither a name nor a step",
			steps:  []NamedStep[*budget]{{}},
			want:   "make it with Named",
		},
		"CleanupWithoutFinalizer": {
			reason: "without a finalizer the object is removed before its cleanup runs",
			steps:  []NamedStep[*budget]{Named("a", cleaner)},
			want:   `step "a" cleans up: name its finalizer`,
		},
		"FinalizerWithoutCleanup": {
			reason: "the object could never be removed",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)).Finalizer("example.com/a")},
			want:   "nothing would ever remove it",
		},
		"GiveUpWithoutCleanup": {
			reason: "there is no cleanup to give up",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)).GiveUpCleanupAfter(time.Hour)},
			want:   "nothing would ever remove it",
		},
		"NegativeLimit": {
			reason: "it would give up at the first failure",
			steps:  []NamedStep[*budget]{Named("a", cleaner).Finalizer("example.com/a").GiveUpCleanupAfter(-time.Hour)},
			want:   `step "a" gives up its cleanup after -1h0m0s: give it a limit above zero, or 0 for none`,
		},
		"DuplicateFinalizer": {
			reason: "the first finished cleanup would remove the finalizer of both",
			steps:  []NamedStep[*budget]{Named("a", cleaner).Finalizer("example.com/a"), Named("b", cleaner).Finalizer("example.com/a")},
			want:   `two steps have the finalizer "example.com/a"`,
		},
		"FormerNamesOfAnyStep": {
			reason: "nothing in the cluster has the name of such a step",
			steps:  []NamedStep[*budget]{Named("a", returning(nil)).FormerNames("b")},
			want:   `step "a" has FormerNames, but it stores its name nowhere`,
		},
		"SwappedNames": {
			reason: "each would prune the children of the other",
			steps: []NamedStep[*budget]{
				Named("a", &renamed{stepFunc: returning(nil)}).FormerNames("b"), Named("b", &renamed{stepFunc: returning(nil)}).FormerNames("a"),
			},
			want: `step "a" has the former name "b", which is the name of a step`,
		},
		"FormerNameTwice": {
			reason: "both would have the children of that step",
			steps: []NamedStep[*budget]{
				Named("a", &renamed{stepFunc: returning(nil)}).FormerNames("c"), Named("b", &renamed{stepFunc: returning(nil)}).FormerNames("c"),
			},
			want: `the former name "c" is given twice`,
		},
		"InvalidFinalizer": {
			reason: "names without a domain belong to Kubernetes",
			steps:  []NamedStep[*budget]{Named("a", cleaner).Finalizer("orphan")},
			want:   `invalid finalizer "orphan": a domain of yours must stand before it`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(fake.NewFakeClient(), tc.steps...).Reconcile(t.Context(), request)
			require.ErrorContains(t, err, tc.want, tc.reason)
			require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil), "a retry does not correct a mistake in the code")
		})
	}
}

func TestValidateType(t *testing.T) {
	_, err := New(fake.NewFakeClient(), Named("a", stepFunc[client.Object](nil))).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "give a pointer to an API type", "an interface has no kind")
}
