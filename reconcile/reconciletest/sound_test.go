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

// soundOperators send something in every pass, also when the operator is quiet, and faults happen there too.
var soundOperators = map[string]func(p *reconciletest.Process) shopFunc{
	"ReadsTheServerInEachPass": func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			is := config("settings")
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(is), is); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"QueriesInEachPass": func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := accountsOf(p).keep(ctx, s.Name); err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"IdempotentEffectInEachPass": func(p *reconciletest.Process) shopFunc {
		external := p.External().(*accounts)
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := p.Effect(ctx, "set account "+s.Name, func() error {
				external.All = []string{s.Name + ": " + s.Spec.Motto}
				return nil
			})
			if err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"AppliesAChildInEachPass": func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			want := corev1ac.ConfigMap(s.Name, s.Namespace).WithData(map[string]string{"motto": s.Spec.Motto})
			if err := c.Apply(ctx, want, client.FieldOwner("shop"), client.ForceOwnership); err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"UpdatesTheStatusInEachPass": func(*reconciletest.Process) shopFunc {
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
			report := reconciletest.Explore(t, s, reconciletest.SkipFindings(reconciletest.BreaksConvention)) // writes that change nothing
			assert.NotEmpty(t, report.Survived)
		})
	}
}
