package test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestArticle covers the faults of the article's operator, one in each subtest.
func TestArticle(t *testing.T) {
	t.Run("errors of Get were ignored, or taken for absence", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		var failing atomic.Bool
		failing.Store(true)
		broken := operatortest.Intercept(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				_, d := obj.(*appsv1.Deployment)
				if d && failing.Load() {
					return apierrors.NewInternalError(assert.AnError)
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		u.rolledOut(t, "web", false)
		r, _ := stepped()
		startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{NewClient: broken}, u.Namespace)
		eru := u.create(t, "web", enabled("web", "@daily"))
		u.becomes(t, "web", ": Valid false Failed")
		assert.Contains(t, operatortest.Live(t, u, eru).LastCondition().Message, assert.AnError.Error(), "the error, and not that there is no Deployment")
		failing.Store(false)
		u.becomes(t, "web", scheduled)
	})
	t.Run("an Eru with another name was deleted at once", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		r, _ := stepped()
		o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.rolledOut(t, "web", false)
		uid := u.create(t, "nightly", enabled("web", "@daily")).UID
		eru := u.becomes(t, "nightly", scheduled)
		o.Pass(t, u, eru)
		assert.Equal(t, uid, operatortest.Live(t, u, eru).UID)
	})
	t.Run("that the annotation is removed was not noticed", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		r, _ := stepped()
		o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.rolledOut(t, "web", true)
		u.becomes(t, "web", created)
		u.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled = true })
		u.becomes(t, "web", scheduled)
		ask := func(value string) {
			operatortest.Change(t, u, u.Deployment("web"), func(d *appsv1.Deployment) { d.Annotations = map[string]string{eruv1.AnnotationEru: value} })
		}
		ask("false")
		u.becomes(t, "web", withdrawn)
		ask("true")
		u.becomes(t, "web", scheduled)
		o.Stop()
		ask("")
		startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.becomes(t, "web", withdrawn)
	})
	t.Run("a conflict was retried without reading again", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		var tries atomic.Int32
		interfering := operatortest.Intercept(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if tries.Add(1) == 1 { // somebody writes between the operator's read and its write
					theirs := operatortest.Live(t, u, u.eru("web"))
					theirs.Status.Conditions = []eruv1.EruCondition{{Type: "Theirs", Ready: true, Reason: "Theirs"}}
					if err := u.Status().Update(ctx, theirs); err != nil {
						return err
					}
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		})
		r, _ := stepped()
		startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{NewClient: interfering}, u.Namespace)
		u.rolledOut(t, "web", false)
		u.create(t, "web", enabled("web", "@daily"))
		eru := u.becomes(t, "web", scheduled)
		require.Len(t, eru.Status.Conditions, 2)
		assert.Equal(t, "Theirs", eru.Status.Conditions[0].Type, "what others wrote stays")
	})
	t.Run("errors of annotations were dropped, and the whole map replaced", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		var failing atomic.Bool
		broken := operatortest.Intercept(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if failing.Load() {
					return apierrors.NewInternalError(assert.AnError)
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
		})
		r, _ := stepped()
		startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{NewClient: broken}, u.Namespace)
		u.rolledOut(t, "web", true)
		u.becomes(t, "web", created)
		operatortest.Change(t, u, u.eru("web"), func(eru *eruv1.Eru) { eru.Annotations["team"] = "blue" })
		failing.Store(true)
		u.set(t, "web", func(s *eruv1.EruSpec) { s.Schedule = "@weekly" })
		eru := u.becomes(t, "web", "Stoping: Valid false Failed")
		assert.Contains(t, eru.LastCondition().Message, "annotate Eru")
		failing.Store(false)
		operatortest.Eventually(t, "the annotation is in step", func(c *assert.CollectT) {
			assert.Equal(c, map[string]string{
				"mtsre.meitu.com/deploymentName": `"web"`, "mtsre.meitu.com/enabled": "false", "mtsre.meitu.com/schedule": `"@weekly"`, "team": "blue",
			}, operatortest.Live(c, u, eru).Annotations)
		})
	})
	t.Run("a failure was written to the status of what had not been created", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		refuse := operatortest.Intercept(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return apierrors.NewInternalError(assert.AnError)
			},
		})
		r, _ := stepped()
		o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{NewClient: refuse}, u.Namespace)
		u.rolledOut(t, "web", true)
		operatortest.Eventually(t, "an event on the Deployment tells why", func(c *assert.CollectT) {
			assert.Contains(c, u.events(c, "Deployment", "web"), "CreateEruFailed")
		})
		assert.Empty(t, o.Requests.Take()["PATCH erus/status"])
		o.Stop()
		startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.becomes(t, "web", created)
	})
	t.Run("conditions without type grew for ever, with null as their time", func(t *testing.T) {
		u := newUser(t, apiServer(t))
		r, clock := stepped()
		o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.rolledOut(t, "web", false)
		spec := enabled("web", "@hourly")
		spec.HistoryLimit = 3
		eru := u.create(t, "web", spec)
		u.becomes(t, "web", scheduled)
		for hour := range 5 {
			due := noon.Add(time.Duration(hour+1) * time.Hour)
			clock.SetTime(due)
			o.Pass(t, u, eru)
			u.rollOut(t, "web")
			operatortest.Eventually(t, "the end of the rollout is told", func(c *assert.CollectT) {
				assert.Equal(c, due.Format(time.RFC3339), operatortest.Live(c, u, eru).LastCondition().Message)
			})
		}
		operatortest.Live(t, u, eru)
		require.Len(t, eru.Status.Conditions, 3)
		for i, c := range eru.Status.Conditions {
			assert.Equal(t, "Restarted", c.Type)
			require.NotNil(t, c.LastedTranslationTime)
			assert.True(t, c.LastedTranslationTime.Time.Equal(noon.Add(time.Duration(i+3)*time.Hour)), "oldest first")
		}
	})
	t.Run("there was no owner reference", func(t *testing.T) {
		u := newUser(t, cluster(t))
		startOperator(t, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		d := u.deploy(t, "web", true)
		eru := u.becomes(t, "web", created)
		assert.Equal(t, []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: d.UID, Controller: new(false)}}, eru.OwnerReferences)
		require.NoError(t, u.Delete(t.Context(), d))
		u.Gone(t, eru)
	})
	t.Run("the schedule was never run", func(t *testing.T) {
		u := newUser(t, cluster(t))
		startOperator(t, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.deploy(t, "web", false)
		u.create(t, "web", enabled("web", "@every 3s"))
		u.restarts(t, "web", "")
		assert.Greater(t, u.rollouts(t, "web"), 1)
	})
}

// TestDaysOnWhichTheClockIsSet covers days on which robfig/cron skips or repeats a time. Its panics are covered by TestInvalid.
func TestDaysOnWhichTheClockIsSet(t *testing.T) {
	u := newUser(t, apiServer(t))
	r, clock := stepped()
	o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.rolledOut(t, "web", false)
	tests := map[string]struct {
		reason, schedule string
		passes           []string // and at each the last restart
		want             []string
	}{
		"spring": {
			"02:30 does not come: it is made up for at 03:00 CEST", "30 2 * * *",
			[]string{"2026-03-28T12:00:00Z", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-03-29T12:00:00Z"},
			[]string{"", "", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
		},
		"autumn": {
			"02:30 comes twice: once is enough", "30 2 * * *",
			[]string{"2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T12:00:00Z"},
			[]string{"", "2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u.rolledOut(t, name, false)
			spec := enabled(name, tc.schedule)
			spec.TimeZone = "Europe/Berlin"
			var eru *eruv1.Eru
			for i, moment := range tc.passes {
				now, err := time.Parse(time.RFC3339, moment)
				require.NoError(t, err)
				clock.SetTime(now)
				if eru == nil {
					eru = u.create(t, name, spec)
				}
				o.Pass(t, u, eru)
				assert.Equal(t, tc.want[i], u.restartedAt(t, name), "%s: %s", moment, tc.reason)
				u.rollOut(t, name)
				o.Pass(t, u, eru)
			}
		})
	}
}
