package ownedresources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// paint returns a step that builds the ConfigMap "wall" with a colour, for the shops for which wanted returns true.
func paint(colour string, wanted func(*Shop) bool) reconcile.NamedStep[*Shop] {
	return reconcile.Named("paint-"+colour, Ensure(Build(func(s *Shop) *corev1.ConfigMap {
		if !wanted(s) {
			return nil
		}
		return constant("wall", colour)(s)
	})))
}

func wantedAlways(*Shop) bool { return true }

// onlyWhen is a step that embeds a set, and calls its Reconcile only for some shops.
type onlyWhen struct {
	*ChildSet[*Shop]
	wanted func(*Shop) bool
}

func (s onlyWhen) Reconcile(ctx context.Context, c client.Client, obj *Shop) error {
	if !s.wanted(obj) {
		return nil
	}
	return s.ChildSet.Reconcile(ctx, c, obj)
}

// If two steps build the same child, they would overwrite each other in every reconcile. That is an error, unless
// only one of them builds it for a given shop.
func TestTwoStepsThatBuildOneChild(t *testing.T) {
	keepsData, keepsNone := func(s *Shop) bool { return s.Spec.KeepData }, func(s *Shop) bool { return !s.Spec.KeepData }
	panics := func(*Shop) bool { panic("it cannot say") }
	tests := map[string]struct {
		reason string
		steps  []reconcile.NamedStep[*Shop]
		names  []string // the steps that the error names; empty if the reconciles succeed
	}{
		"in each pass":      {"Neither of them may write.", []reconcile.NamedStep[*Shop]{paint("red", wantedAlways), paint("blue", wantedAlways)}, []string{"paint-red", "paint-blue"}},
		"from a change on":  {"The first step has nothing to do, and is left out.", []reconcile.NamedStep[*Shop]{paint("red", wantedAlways), paint("blue", keepsData)}, []string{"paint-red", "paint-blue"}},
		"one or the other":  {"The child moves from one step to the other.", []reconcile.NamedStep[*Shop]{paint("red", keepsNone), paint("blue", keepsData)}, nil},
		"one after another": {"Two names are two children.", []reconcile.NamedStep[*Shop]{paint("red", wantedAlways), reconcile.Named("other", Ensure(Build(constant("other", ""))))}, nil},
		"a step that calls its set for some shops": {
			"Nobody knows when it calls it.", []reconcile.NamedStep[*Shop]{
				paint("red", keepsNone), reconcile.Named("paint-blue", onlyWhen{Ensure(Build(constant("wall", "blue"))), keepsData}),
			}, nil,
		},
		"a step that panics when it is asked": {"Its own pass says so.", []reconcile.NamedStep[*Shop]{paint("red", wantedAlways), reconcile.Named("broken", Ensure(Build(
			func(s *Shop) *corev1.ConfigMap {
				if panics(s) {
					return nil
				}
				return namedConfigMap("", "wall")
			})))}, []string{"broken"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := reconciletest.NewClient(t, scheme.Scheme, shopsFile)
			require.NoError(t, c.Create(t.Context(), newShop()))
			r := reconcile.New(c, tc.steps...)
			pass := func() (message string) {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: shopName})
				require.NoError(t, err)
				live := &Shop{}
				require.NoError(t, c.Get(t.Context(), shopName, live))
				ready, _ := conditions.Get(live.Status.Conditions, conditions.Ready)
				if ready.Status == metav1.ConditionTrue {
					return ""
				}
				return ready.Message
			}
			first := pass()
			pass()
			if name == "from a change on" || tc.names == nil {
				require.Empty(t, first, tc.reason)
				live := &Shop{}
				require.NoError(t, c.Get(t.Context(), shopName, live))
				live.Spec.KeepData = true
				require.NoError(t, c.Update(t.Context(), live))
				first = pass()
			}
			for _, step := range tc.names {
				require.Contains(t, first, step, tc.reason)
			}
			if tc.names == nil {
				require.Empty(t, first, tc.reason)
			}
			if strings.Contains(first, "built by two steps") {
				require.Contains(t, first, "build it in one of them, or give the objects different names")
			}
		})
	}
}

// If two reconcilers of one manager build the same child, they would overwrite each other too. That is an error, unless filters give
// each of them its own shops.
func TestTwoReconcilersThatBuildOneChild(t *testing.T) {
	keepsData := func(s *Shop) bool { return s.Spec.KeepData }
	keepsNone := func(s *Shop) bool { return !keepsData(s) }
	type filters [2]func(*Shop) bool // one for each reconciler
	tests := map[string]struct {
		reason string
		passes filters // the option WithFilter of the reconcilers
		events filters // the option WithEventFilter of the builders
		want   string
	}{
		"of all shops":                        {"Nothing tells them apart.", filters{wantedAlways, wantedAlways}, filters{}, "built by two steps"},
		"of different shops":                  {"Each has its own.", filters{keepsNone, keepsData}, filters{}, ""},
		"of the shops of one":                 {"The other one reconciles nothing.", filters{wantedAlways, keepsData}, filters{}, ""},
		"of different shops, by event filter": {"Only the builder knows its filter.", filters{}, filters{keepsNone, keepsData}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scenario := withShops(reconciletest.Scenario{
				Start: func(p *reconciletest.Process) error {
					mgr := p.Manager(reconcile.CacheOptions())
					for i, colour := range []string{"red", "blue"} {
						r := reconcile.New(mgr.GetClient(), paint(colour, wantedAlways))
						if passes := tc.passes[i]; passes != nil {
							r.WithFilter(passes)
						}
						b := ctrl.NewControllerManagedBy(mgr).Named("shop-" + colour).For(&Shop{})
						if events := tc.events[i]; events != nil {
							b.WithEventFilter(predicate.NewPredicateFuncs(func(obj client.Object) bool {
								shop, isShop := obj.(*Shop)
								return isShop && events(shop)
							}))
						}
						if err := errors.Join(r.SetupWithBuilder(mgr, b), b.Complete(r)); err != nil {
							return err
						}
					}
					return nil
				},
				Actions: []reconciletest.Action{reconciletest.Create(newShop())},
			})
			reconciletest.Run(t, scenario, func(t *testing.T, env *reconciletest.Env) {
				live := &Shop{}
				require.NoError(t, env.Get(t.Context(), shopName, live))
				ready, _ := conditions.Get(live.Status.Conditions, conditions.Ready)
				if tc.want == "" {
					require.Equal(t, metav1.ConditionTrue, ready.Status, tc.reason)
					return
				}
				require.Contains(t, ready.Message, tc.want, tc.reason)
				require.Contains(t, ready.Message, "of another reconciler of Shop")
			})
		})
	}
}
