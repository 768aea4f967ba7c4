package reconciletest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestSecretInEventsAndLogs(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Data:       map[string][]byte{"password": []byte("correct horse")},
	}
	tell := map[string]func(p *reconciletest.Process, ctx context.Context, text string){
		"Event": func(p *reconciletest.Process, _ context.Context, text string) {
			p.EventRecorder().Eventf(shop(), nil, "Normal", "Told", "Tell", "it is %s", text)
		},
		"LegacyEvent": func(p *reconciletest.Process, _ context.Context, text string) {
			p.LegacyEventRecorder().Event(shop(), "Normal", "Told", text)
		},
		"Log": func(_ *reconciletest.Process, ctx context.Context, text string) {
			ctrl.LoggerFrom(ctx).Info("Connected", "with", text)
		},
		"Error": func(_ *reconciletest.Process, ctx context.Context, text string) {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("refused: %s", text), "Cannot connect")
		},
	}
	for name, tell := range tell {
		t.Run(name, func(t *testing.T) {
			scenario := func(text string) reconciletest.Scenario {
				s := of(func(p *reconciletest.Process) shopFunc {
					return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
						tell(p, ctx, text)
						return ctrl.Result{}, nil
					}
				}, reconciletest.Create(shop()))
				s.Objects = []client.Object{secret}
				return s
			}
			assert.Empty(t, reconciletest.ExploreQuietly(t, scenario("as web")).Failures)
			assert.Contains(t, reconciletest.ExploreQuietly(t, scenario("as web with correct horse")).String(), `the value of key "password" in Secret web`)
		})
	}
}

// A value is secret as soon as the request that creates its Secret has succeeded.
func TestSecretCreatedInThePass(t *testing.T) {
	says := ""
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, StringData: map[string]string{"password": "correct horse", "username": "postgres"}}
			if err := client.IgnoreAlreadyExists(c.Create(ctx, made)); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, says))
		}
	}, reconciletest.Create(shop()))
	for text, leaks := range map[string]bool{"it is correct horse": true, "postgres:16": false} {
		says = text
		report := reconciletest.ExploreQuietly(t, s)
		assert.Equal(t, leaks, len(report.Failures) > 0, report.String())
		if leaks {
			assert.Contains(t, report.String(), `the value of key "password" in Secret web appears in status.phase`)
		}
	}
}
