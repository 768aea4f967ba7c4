package reconciletest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A reconciler written by hand creates a ConfigMap. It ignores the error of the creation.
func ExampleExploreQuietly() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				if err := ensure(ctx, c, s, owned(c, s, s.Name, nil)); err != nil {
					ctrl.LoggerFrom(ctx).Error(err, "Cannot create the ConfigMap")
				}
				return ctrl.Result{}, nil
			}})
			return nil
		},
		Actions: []reconciletest.Action{reconciletest.Create(shop())},
	})
	text, _, _ := strings.Cut(report.String(), "\nreplay it:")
	fmt.Println(text)
	// Output:
	// It does not survive one fault: connection refused at: create ConfigMap default/web #1.
	//
	// after "create Shop default/web" the state is not the same as without faults:
	//   ConfigMap default/web: present without faults, absent here
	// Which of the two is right, the scenario does not say: see Action.Then
	//
	// pass  what happened, and the answer (passes that sent nothing are left out)
	//       user: create Shop default/web
	// 1     pass over Shop default/web      added Shop default/web
	// 1       create ConfigMap default/web  Create "https://api.example.com/configmap": connection refused   ← it does not reach the server
	// 1       log                           Cannot create the ConfigMap: Create "https://api.example.com/configmap": connection refused
}

// The scenario says what must be true, so the failure names the run that is wrong. The operator ignores the error of the creation.
func ExampleReady() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				_ = ensure(ctx, c, s, owned(c, s, s.Name, nil))
				return ctrl.Result{}, nil
			}})
			return nil
		},
		Actions: []reconciletest.Action{reconciletest.Create(shop()).Then(reconciletest.Ready(config("web")))},
	})
	fmt.Println(report.Failures[0].Err)
	// Output:
	// after "create Shop default/web" the state is not the same as without faults:
	//   ConfigMap default/web: present without faults, absent here
	// This run is wrong: what the scenario asks for is true without faults, and not here: ConfigMap default/web does not exist (checked at example_test.go:59)
}

// The scenario says what the spec asks for. The operator forgets the motto, in each run alike.
func ExampleHas() {
	t := new(testing.T) // in a test it is the function's own
	web := config("web")
	web.Data = map[string]string{"motto": "more"}
	report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, nil))
			}})
			return nil
		},
		Actions: []reconciletest.Action{reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "more" })).Then(reconciletest.Has(web))},
	})
	fmt.Println(report.Failures[0].Err)
	// Output:
	// after "create Shop default/web" what must be true is not: ConfigMap default/web is not as it must be:
	//   data.motto is missing, and must be "more" (checked at example_test.go:81)
}

// In an ordinary test the request log has what the operator sent.
func ExampleRun() {
	t := new(testing.T) // in a test it is the function's own
	scenario := reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				want := owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})
				return ctrl.Result{}, ensure(ctx, c, s, want)
			}})
			return nil
		},
		Actions: []reconciletest.Action{reconciletest.Create(shop())},
	}
	reconciletest.Run(t, scenario, func(t *testing.T, env *reconciletest.Env) {
		env.Do(reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "always open" }))
		env.RequestLog.AssertWrites(t, "update ConfigMap default/web")

		env.Do(reconciletest.Delete(config("web")))
		fmt.Println(env.RequestLog.Writes())
	})
	// Output:
	// [create ConfigMap default/web]
}

// Faults happen at effects outside of the cluster too, and the state there is compared. This operator cleans up in the wrong
// order: it removes the finalizer before the account.
func ExampleProcess_Effect() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &directory{users: map[string]bool{}} },
		Start: func(p *reconciletest.Process) error {
			users := p.External().(*directory)
			add := func(ctx context.Context, name string) error {
				return p.Effect(ctx, "add "+name, func() error { users.users[name] = true; return nil })
			}
			remove := func(ctx context.Context, name string) error {
				return p.Effect(ctx, "remove "+name, func() error { delete(users.users, name); return nil })
			}
			p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				if s.DeletionTimestamp != nil {
					if err := removeFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, remove(ctx, s.Name)
				}
				if err := ensureFinalizer(ctx, c, s); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, add(ctx, s.Name)
			}})
			return nil
		},
		Actions: []reconciletest.Action{reconciletest.Create(shop()), reconciletest.Delete(shop())},
	})
	fmt.Println(report.Failures[0].Faults[0])
	fmt.Println(report.Failures[0].Err)
	// Output:
	// crash after: update Shop default/web #2
	// after "delete Shop default/web" the state is not the same as without faults:
	//   external: null without faults, {"web":true} here
	// Which of the two is right, the scenario does not say: see Action.Then
}

type directory struct{ users map[string]bool }

func (d *directory) State() any { return d.users }
