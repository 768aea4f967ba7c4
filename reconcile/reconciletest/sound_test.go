package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// soundOperators send something in every pass, also when all is quiet, and a fault strikes there too.
var soundOperators = map[string]func(p *reconciletest.Process) shopFunc{
	"asks the server in each pass and shows failures": func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			is := config("settings")
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(is), is); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"asks outside in each pass and shows failures": func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := accountsOf(p).keep(ctx, s.Name); err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"an idempotent effect in each pass": func(p *reconciletest.Process) shopFunc {
		outside := p.External().(*accounts)
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := p.Effect(ctx, "set account "+s.Name, func() error {
				outside.All = []string{s.Name + ": " + s.Spec.Motto}
				return nil
			})
			if err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"server-side apply of a child in each pass": func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			want := corev1ac.ConfigMap(s.Name, s.Namespace).WithData(map[string]string{"motto": s.Spec.Motto})
			if err := c.Apply(ctx, want, client.FieldOwner("shop"), client.ForceOwnership); err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"an update of the status in each pass": func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			s.Status.Phase, s.Status.Message = "Open", s.Spec.Motto
			return ctrl.Result{}, c.Status().Update(ctx, s)
		}
	},
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestSoundOperatorsSurvive(t *testing.T) {
	for name, operator := range soundOperators {
		t.Run(name, func(t *testing.T) {
			s := of(operator, reconciletest.Create(shop()),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "less" }))
			s.External = newAccounts
			report := reconciletest.Explore(t, s)
			assert.NotEmpty(t, report.Survived)
		})
	}
}

// The pass that shows whether all is quiet is none of the operator's doing.
func TestLedgerWithoutTheCheckOfRest(t *testing.T) {
	s := of(soundOperators["server-side apply of a child in each pass"], reconciletest.Create(shop()))
	reconciletest.Run(t, s, func(t *testing.T, w *reconciletest.Env) {
		w.RequestLog.AssertSent(t)
		w.Do(reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
		assert.NotEmpty(t, w.RequestLog.Requests())
		w.RequestLog.AssertSent(t, "apply ConfigMap default/web", "apply ConfigMap default/web")
	})
}
