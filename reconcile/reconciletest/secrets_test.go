package reconciletest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

func TestWhatIsSecret(t *testing.T) {
	tests := map[string]struct {
		reason string
		key    string
		value  string
		ignore reconciletest.Ignore
		skip   []reconciletest.FindingKind
		leaks  bool
	}{
		"Secret":      {reason: "A value that appears elsewhere is a leak.", key: "token", value: "open sesame", leaks: true},
		"PublicKey":   {reason: "The type of a Service Binding is not secret.", key: "type", value: "postgresql"},
		"Word":        {reason: "The name of a key of a Service Binding is not secret.", key: "token", value: "password"},
		"Ignored":     {reason: "The scenario says that the key is not secret.", key: "token", value: "open sesame", ignore: reconciletest.Ignore{Fields: map[string][]string{"Secret": {"data.token"}}}},
		"OtherKey":    {reason: "Another key may be secret.", key: "token", value: "open sesame", ignore: reconciletest.Ignore{Fields: map[string][]string{"Secret": {"data.other"}}}, leaks: true},
		"Masked":      {reason: "A value that differs between runs may be secret.", key: "token", value: "open sesame", ignore: reconciletest.Ignore{SecretValues: true}, leaks: true},
		"SwitchedOff": {reason: "The rule is switched off.", key: "token", value: "open sesame", skip: []reconciletest.FindingKind{reconciletest.Findings.LeaksSecret}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "it is "+tc.value))
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Data: map[string][]byte{tc.key: []byte(tc.value)}}}
			s.Ignore = tc.ignore
			report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true, SkipFindings: tc.skip}))
			assert.Equal(t, tc.leaks, len(report.Failures) > 0, "%s\n%s", tc.reason, report)
			for _, f := range report.Failures {
				assert.Equal(t, reconciletest.Findings.LeaksSecret, f.Kind)
			}
		})
	}
}

// A user deletes a Job as kubectl does: with its pods.
func TestUserDeletesAJob(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}}}
	s := of(func(*reconciletest.Process) shopFunc {
		return func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil }
	})
	s.Objects = []client.Object{job}
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		env.Do(reconciletest.Delete(job))
		require.True(t, apierrors.IsNotFound(env.Get(t.Context(), client.ObjectKeyFromObject(job), &batchv1.Job{})))
		pods := &corev1.PodList{}
		require.NoError(t, env.List(t.Context(), pods))
		require.Empty(t, pods.Items)
	})
}
