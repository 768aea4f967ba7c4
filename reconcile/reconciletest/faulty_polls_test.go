package reconciletest_test

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// faultyPolls are operators that look again after a delay.
var faultyPolls = map[string]faulty{
	"LooksAgainAfterTheHorizon": {
		reason: "the pass that would find the deletion is due after the time for which the scenario waits",
		scenario: func(sound bool) reconciletest.Scenario {
			s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{})
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return resultOf(3*time.Second, ensure(ctx, c, s, owned(c, s, s.Name, nil)))
				}}
			}, reconciletest.Create(shop()), reconciletest.Delete(config("web")))
			if s.Horizon = 2 * time.Second; sound {
				s.Horizon = 4 * time.Second
			}
			return s
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{
			"the last pass over shop default/web asked for another one after 3s, for which the scenario does not wait, " +
				"and when the operator was quiet one more pass still had to create ConfigMap default/web\n",
			"Either a watch is missing: deleted ConfigMap default/web triggered no pass. Or that pass is meant to see it: then set a Horizon in which it runs",
		},
		never: []string{"if nothing has changed"},
	},
	"ActsAfterTheHorizon": {
		reason: "the shop opens a second after its creation, and the pass that would see that is due after the time for which the scenario waits",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if time.Since(s.CreationTimestamp.Time) < time.Second {
						return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
					}
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
				}
			}, reconciletest.Create(shop()))
			if s.Horizon = 3 * time.Second; sound {
				s.Horizon = 10 * time.Second
			}
			return s
		},
		kind:  reconciletest.Findings.DoesNotRest,
		says:  []string{"asked for another one after 5s, for which the scenario does not wait", "If that pass is meant to do it, set a Horizon in which it runs"},
		never: []string{"a watch is missing", "if nothing has changed"},
	},
}
