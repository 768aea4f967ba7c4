package reconciletest_test

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// endsOnceOpen is an operator whose passes end at once if the shop is open.
func endsOnceOpen(sound bool) func(*reconciletest.Process) shopFunc {
	return func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.Status.Phase == "Open" && !sound {
				return ctrl.Result{}, nil
			}
			if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}
}

// mottoIsBlue returns an error if the child does not have the shop's last motto.
func mottoIsBlue(env *reconciletest.Env) error {
	is := config("web")
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(is), is); err != nil {
		return err
	}
	if is.Data["motto"] != "blue" {
		return errors.New("the child has an old motto")
	}
	return nil
}

// faultyReady are operators that believe too early that something is ready.
var faultyReady = map[string]faulty{
	"EndsOnceOpen": {
		reason: "a later change of the spec is not looked at; a fault that keeps the shop from being open makes it better, so no run is called wrong",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(endsOnceOpen(sound), painted("red", "blue", "green")...)
		},
		fault: reconciletest.Faults.CrashDowntime,
		kind:  reconciletest.Findings.DependsOnTiming,
		says:  []string{`ConfigMap default/web: data.motto: "red" without faults, "green" if the operator starts late, "blue" here`},
		never: []string{"This run is wrong"},
	},
	"EndsOnceOpenAndAsked": {
		reason: "the scenario says what must be true, so the run without faults is the wrong one",
		scenario: func(sound bool) reconciletest.Scenario {
			actions := painted("red", "blue")
			actions[1] = actions[1].Then(mottoIsBlue)
			return of(endsOnceOpen(sound), actions...)
		},
		says: []string{`after "change Shop default/web" what must be true is not: the child has an old motto`},
	},
}
