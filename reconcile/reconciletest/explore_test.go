package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// twoFaults is an operator that survives every single fault, but not two. It tries twice to drop the account, and then removes the
// finalizer even if both attempts have failed.
func twoFaults() reconciletest.Scenario {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.DeletionTimestamp == nil {
				if err := ensureFinalizer(ctx, c, s); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
			}
			for range 2 {
				if accountsOf(p).drop(ctx, s.Name) == nil {
					break
				}
			}
			return ctrl.Result{}, removeFinalizer(ctx, c, s)
		}
	}, createAndDelete...)
	s.External = newAccounts
	return s
}

// A run with the same fault has the same trace each time.
func TestExploreIsDeterministic(t *testing.T) {
	const faults = "leader change before: effect drop account web #1"
	first := reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Replay: faults})).Replayed
	for range 20 {
		require.Equal(t, first, reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Replay: faults})).Replayed)
	}
}

// Conditions are a map by type: their order has no meaning.
func TestExploreIgnoresTheOrderOfConditions(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			types := []string{"One", "Two"}
			if err := c.Get(ctx, client.ObjectKeyFromObject(config("absent")), config("")); !isAbsent(err) {
				return ctrl.Result{}, err
			}
			if s.Annotations["reconciletest.opblocks.dev/another-writer"] != "" {
				types = []string{"Two", "One"}
			}
			if len(s.Status.Conditions) > 1 {
				return ctrl.Result{}, nil
			}
			for _, of := range types {
				s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionTrue, Reason: "X", LastTransitionTime: metav1.Now()})
			}
			return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
		}
	}, reconciletest.Create(shop()))
	assert.Empty(t, reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{Replay: "conflict at: update Shop/status default/web #1"})).Failures)
}

func isAbsent(err error) bool { return client.IgnoreNotFound(err) == nil && err != nil }

// An operator that watches unstructured objects does not count as one that watches another version.
func TestExploreUnstructuredWatch(t *testing.T) {
	s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		other := &unstructured.Unstructured{}
		other.SetGroupVersionKind(shopVersion.WithKind("Shop"))
		b.For(other)
		return &shopReconciler{p.Client(), idle(p)}
	}, reconciletest.Create(shop()))
	assert.Empty(t, reconciletest.ExploreQuietly(t, s).Failures, "untyped is no other version")
}

// The report's rights include what the operator asks for only in a run without faults that starts the operator late.
func TestExploreCountsRightsOfReferences(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.Spec.Motto == "blue" && s.Status.Phase == "" {
				if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(config("late")), config("")); !isAbsent(err) {
					return ctrl.Result{}, err
				}
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}, painted("red", "blue")...)
	report := reconciletest.Explore(t, with(s, reconciletest.Options{SkipFaults: reconciletest.AllFaults()}))
	assert.Equal(t, 1, report.Runs)
	assert.Contains(t, report.Rights, reconciletest.Right{Verb: "get", Resource: "configmaps", Namespace: "default", Name: "late"})
}
