package reconciletest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var errMotto = errors.New("the motto is not to be had")

// An operator that rests between attempts which all fail has not done its work.
func TestEndsInAnError(t *testing.T) {
	invalid := func(s *Shop) *corev1.ConfigMap {
		made := config(s.Name)
		made.Name = "Not a name"
		return made
	}
	tests := map[string]struct {
		pass func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error)
		says string // nothing: that is well
	}{
		"error": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, errMotto },
			"passes over Shop default/web still end in an error: the motto is not to be had",
		},
		"terminal error": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{}, ctrlreconcile.TerminalError(errMotto)
			}, "",
		},
		"requeue for ever": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{Requeue: true}, nil //nolint:staticcheck // reconcilers still use it
			},
			"passes over Shop default/web still end by asking for another one (Requeue)",
		},
		"refused, and again after a delay": {
			func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				if c.Create(ctx, invalid(s)) != nil {
					return ctrl.Result{RequeueAfter: time.Minute}, nil
				}
				return ctrl.Result{}, nil
			},
			"still end with a delay of 1m0s, since create ConfigMap default/Not a name is refused: ",
		},
		"a delay": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{RequeueAfter: time.Minute}, nil
			}, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(func(*reconciletest.Process) shopFunc { return tc.pass }, reconciletest.Create(shop()))
			report := reconciletest.ExploreQuietly(t, s)
			if tc.says == "" {
				assert.Empty(t, report.Failures)
			} else {
				require.NotEmpty(t, report.Failures)
				assert.Empty(t, report.Failures[0].Faults)
				assert.Contains(t, report.String(), tc.says)
			}

			s.Actions = append(s.Actions, reconciletest.Delete(shop()))
			reconciletest.Explore(t, s) // what an action mends is well
		})
	}
}
