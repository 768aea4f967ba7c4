package reconciletest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// ofSteps returns a scenario of an operator of package reconcile. Each process makes its own steps.
func ofSteps(steps func() []reconcile.NamedStep[*Shop], actions ...reconciletest.Action) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"}, Actions: actions,
		Start: func(p *reconciletest.Process) error { return reconcile.For(p.Manager(), steps()...).Complete() },
	}
}

// step returns a function that makes a step. The step returns the error of f.
func step(f func(s *Shop) error) func() []reconcile.NamedStep[*Shop] {
	return func() []reconcile.NamedStep[*Shop] {
		return []reconcile.NamedStep[*Shop]{reconcile.Named("greet", reconcile.Func(func(_ context.Context, _ client.Client, s *Shop) error { return f(s) }))}
	}
}

// workload returns a function that makes a step with one child.
func workload[C client.Object](child func() *ownedresources.Child[*Shop, C]) func() []reconcile.NamedStep[*Shop] {
	return func() []reconcile.NamedStep[*Shop] {
		return []reconcile.NamedStep[*Shop]{reconcile.Named("workload", ownedresources.Ensure(child()))}
	}
}

// nilError panics in Error, as an error that is a nil pointer often does.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// A pass of package reconcile returns no error even if its steps fail, so the steps are judged.
func TestFindsStepThatNeverSucceeds(t *testing.T) {
	secret := ownedresources.From(func(ctx context.Context, r client.Reader, s *Shop) (string, error) {
		read := &corev1.Secret{}
		err := r.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "motto"}, read)
		return string(read.Data["motto"]), err
	})
	tests := map[string]struct {
		steps func() []reconcile.NamedStep[*Shop]
		says  string
	}{
		"Fails":    {step(func(*Shop) error { return errors.New("the greeting is broken") }), "fails since \"create Shop default/web\": Failed: the greeting is broken"},
		"Stalled":  {step(func(*Shop) error { return reconcile.Stalled("BadGreeting", errors.New("it is bad")) }), `is stalled since "create Shop default/web": BadGreeting: it is bad`},
		"Waits":    {step(func(*Shop) error { return reconcile.Wait("Greeting", time.Minute, "it is awaited") }), `waits since "create Shop default/web": Greeting: it is awaited`},
		"Panics":   {step(func(*Shop) error { panic("the greeting explodes") }), "the log has the stack: the greeting explodes"},
		"NilPanic": {step(func(*Shop) error { panic((*nilError)(nil)) }), "the log has the stack: <nil>"},
		"NamelessChild": {workload(func() *ownedresources.Child[*Shop, *corev1.ConfigMap] {
			return ownedresources.Build(func(s *Shop) *corev1.ConfigMap {
				return &corev1.ConfigMap{Data: map[string]string{"motto": s.Spec.Motto}}
			})
		}), "ConfigMap has no name"},
		"UndeclaredInput": {workload(func() *ownedresources.Child[*Shop, *corev1.ConfigMap] {
			return ownedresources.BuildFrom(secret, func(s *Shop, value string) (*corev1.ConfigMap, error) {
				return ownedresources.NewConfigMap(s, map[string]string{"motto": value}), nil
			})
		}), "the input reads a Secret, which it does not declare"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := ofSteps(tc.steps, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
			for _, then := range [][]reconciletest.Action{nil, {reconciletest.Delete(shop())}} {
				s.Actions = append(s.Actions, then...)
				report := reconciletest.ExploreQuietly(t, s)
				require.Len(t, report.Failures, 1)
				assert.Equal(t, reconciletest.Findings.DoesNotSucceed, report.Failures[0].Kind)
				assert.ErrorContains(t, report.Failures[0].Err, tc.says)
				assert.Contains(t, report.String(), "It does not succeed without any fault.")
			}
			left := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.DoesNotSucceed}, WithoutFaults: true}))
			assert.Empty(t, left.Failures)
			assert.Positive(t, left.Silenced)
		})
	}
}

// If a later action makes a failed step succeed, that is not a finding. If only a retry made it succeed, the report has a note.
func TestStepsThatAreRepaired(t *testing.T) {
	s := ofSteps(nil, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
	s.Start = func(p *reconciletest.Process) error {
		tried := false
		return reconcile.For(p.Manager(), step(func(s *Shop) error {
			switch {
			case s.Spec.Motto == "":
				return reconcile.Stalled("NoMotto", errors.New("there is no motto"))
			case !tried:
				tried = true
				return errors.New("not yet")
			}
			return nil
		})()...).Complete()
	}
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true}))
	assert.Empty(t, report.Failures, report.String())
	assert.Contains(t, strings.Join(report.Notes, "\n"), `step "greet" of Shop default/web after "change Shop default/web": `)
}

func TestUnready(t *testing.T) {
	s := ofSteps(step(func(*Shop) error { return reconcile.Stalled("NoMotto", errors.New("there is no motto")) }), reconciletest.Create(shop()))
	s.Unready = []reconciletest.Unready{{Object: shop(), Reason: "NoMotto"}}
	report := reconciletest.Explore(t, s)
	assert.NotEmpty(t, report.Survived)

	for reason, tc := range map[string]struct {
		unready reconciletest.Unready
		says    string
	}{
		"the state does not come":  {reconciletest.Unready{Object: shop(), Reason: "NoLicence"}, `the scenario says that Shop default/web does not become ready, for the reason "NoLicence", and that is not so`},
		"another object":           {reconciletest.Unready{Object: config("web"), Reason: "NoMotto"}, "the scenario says that ConfigMap default/web does not become ready"},
		"no reason":                {reconciletest.Unready{Object: shop()}, "the scenario's Unready[0] lacks its Object or its Reason: give it both"},
		"no object":                {reconciletest.Unready{Reason: "NoMotto"}, "the scenario's Unready[0] lacks its Object or its Reason: give it both"},
		"a kind outside of Scheme": {reconciletest.Unready{Object: &unknownKind{}, Reason: "NoMotto"}, "add its types to the scheme"},
	} {
		s.Unready = []reconciletest.Unready{tc.unready}
		report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true}))
		require.NotEmpty(t, report.Failures, reason)
		assert.Contains(t, report.Failures[len(report.Failures)-1].Err.Error()+report.Failures[0].Err.Error(), tc.says, reason)
	}
}

type unknownKind struct{ corev1.Pod }

// An operator that runs no pass is a finding: nothing was tested.
func TestFindsThatNoPassIsMade(t *testing.T) {
	nothing := func(p *reconciletest.Process) error { p.Manager(); return nil }
	forgotten := func(p *reconciletest.Process) error {
		reconcile.For(p.Manager(), step(func(*Shop) error { return nil })()...)
		return nil
	}
	complete := func(p *reconciletest.Process) error {
		return reconcile.For(p.Manager(), step(func(*Shop) error { return nil })()...).Complete()
	}
	for reason, s := range map[string]reconciletest.Scenario{
		"nothing is set up":     {Start: nothing, Actions: []reconciletest.Action{reconciletest.Create(shop())}},
		"Complete is forgotten": {Start: forgotten, Actions: []reconciletest.Action{reconciletest.Create(shop())}},
		"no object of the kind": {Start: complete, Actions: []reconciletest.Action{reconciletest.Create(config("web"))}},
	} {
		s.Scheme, s.CRDs = scheme, []string{"testdata"}
		report := reconciletest.ExploreQuietly(t, s)
		require.Len(t, report.Failures, 1, reason)
		assert.ErrorContains(t, report.Failures[0].Err, "no controller has made a pass, so nothing was tested", reason)
	}
	filtered := func(events bool) func(p *reconciletest.Process) error {
		return func(p *reconciletest.Process) error {
			none := func(*Shop) bool { return false }
			mgr := p.Manager()
			if events { // the filter also drops the events of the watch
				return reconcile.For(mgr, step(func(*Shop) error { return nil })()...).WithFilter(none).Complete()
			}
			r := reconcile.New(mgr.GetClient(), step(func(*Shop) error { return nil })()...).WithFilter(none)
			b := ctrl.NewControllerManagedBy(mgr).For(&Shop{})
			return errors.Join(r.SetupWithBuilder(mgr, b), b.Complete(r))
		}
	}
	for _, events := range []bool{false, true} {
		report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
			Scheme: scheme, CRDs: []string{"testdata"}, Actions: []reconciletest.Action{reconciletest.Create(shop()), reconciletest.Delete(shop())}, Start: filtered(events),
		})
		require.Len(t, report.Failures, 1, "with a filter of events: %v", events)
		want := "each pass was left out by a filter (WithFilter), such as the one over "
		if events {
			want = "no pass was made while its object existed, so nothing was tested: does a filter (WithFilter) or a predicate"
		}
		assert.ErrorContains(t, report.Failures[0].Err, want)
	}
	two := reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"}, Actions: []reconciletest.Action{reconciletest.Create(shop())},
		Start: func(p *reconciletest.Process) error {
			if err := complete(p); err != nil {
				return err
			}
			return ctrl.NewControllerManagedBy(p.Manager()).Named("idle").For(&corev1.Secret{}).Complete(&shopReconciler{})
		},
	}
	report := reconciletest.ExploreQuietly(t, with(two, reconciletest.Options{WithoutFaults: true}))
	assert.Empty(t, report.Failures)
	assert.Contains(t, report.Notes, "The controller idle has made no pass: the scenario has no object for it")
}

// If the operator does not use package reconcile and its object is not ready in the end, the report has a note.
func TestNotesConditions(t *testing.T) {
	s := passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		if len(s.Status.Conditions) > 0 {
			return ctrl.Result{}, nil
		}
		s.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NoRoom", Message: "there is no room", LastTransitionTime: metav1.Now()}}
		return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
	})
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true}))
	assert.Empty(t, report.Failures, report.String())
	require.Len(t, report.Notes, 1)
	assert.Contains(t, report.Notes[0], `Without any fault, the conditions of Shop default/web say in the end that it is not ready, since "create Shop default/web": `)
}
