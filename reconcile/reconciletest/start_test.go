package reconciletest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// If Start or the manager fails because of a fault, the process ends and another one starts, as in a cluster.
func TestProcessEndsByItself(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	tests := map[string]struct {
		reason string
		start  func(p *reconciletest.Process) error
		says   string
	}{
		"StartReads": {
			reason: "The next process reads the settings.",
			start: func(p *reconciletest.Process) error {
				return p.APIReader().Get(p.Context(), client.ObjectKeyFromObject(settings), &corev1.ConfigMap{})
			},
		},
		"RunnableReads": {
			reason: "A runnable that returns an error ends the manager.",
			start: func(p *reconciletest.Process) error {
				return p.Manager().Add(manager.RunnableFunc(func(ctx context.Context) error {
					return p.APIReader().Get(ctx, client.ObjectKeyFromObject(settings), &corev1.ConfigMap{})
				}))
			},
		},
		"LeavesALock": {
			reason: "A lock that a crash leaves behind keeps each later process from starting.",
			start: func(p *reconciletest.Process) error {
				lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lock"}}
				if err := p.Client().Create(p.Context(), lock); err != nil {
					return err
				}
				return p.Client().Delete(p.Context(), lock)
			},
			says: "processes have ended, the last one by start: configmaps \"lock\" already exists",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(func(*reconciletest.Process) shopFunc {
				return func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil }
			}, reconciletest.Create(shop()))
			register := s.Start
			s.Start = func(p *reconciletest.Process) error { return errors.Join(tc.start(p), register(p)) }
			s.Objects = []client.Object{settings}
			report := reconciletest.ExploreQuietly(t, s)
			if tc.says == "" {
				assert.Empty(t, report.Failures, "%s\n%s", tc.reason, report)
				assert.NotZero(t, report.Survived[reconciletest.Faults.InternalError])
				return
			}
			require.NotEmpty(t, report.Failures)
			assert.Contains(t, report.String(), tc.says, tc.reason)
		})
	}
}

// If Start fails without a fault, the exploration fails.
func TestStartFailsWithoutAFault(t *testing.T) {
	s := of(nil, reconciletest.Create(shop()))
	s.Start = func(*reconciletest.Process) error { return errors.New("no settings") }
	report := reconciletest.ExploreQuietly(t, s)
	require.Len(t, report.Failures, 1)
	require.EqualError(t, report.Failures[0].Err, "start: no settings")
	require.Empty(t, report.Failures[0].Faults)
}
