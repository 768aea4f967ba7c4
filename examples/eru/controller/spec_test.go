//go:build !race

package controller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/schedule"
)

type spec = eruv1.EruSpec

// The lines of an Eru in its states. More follows: the owner, and what is recorded.
const (
	created   = "web: Stoping: Created true create eru cr success,wait to start, requested, of web"
	removed   = "web: Stoping: Stopped true AnnotationRemoved, requested, of web"
	scheduled = "nightly: Running: Scheduled true Scheduled, of web"
	complete  = "nightly: Running: Restarted true RolloutComplete, of web"
	failed    = "nightly: Running: Restarted false RolloutFailed, of web"
	unknown   = "nightly: Running: Restarted false RolloutUnknown, of web"
	skipped   = "nightly: Running: Restarted false Skipped"
	invalid   = "nightly: Failure: Valid false Invalid"
	disabled  = "nightly: Stoping: Stopped true Disabled, of web"
	notFound  = "nightly: Stoping: Valid false DeploymentNotFound"
)

// TestDoesWhatTheSpecSays runs more changes, and only without faults: nothing else in it can fail. The virtual clock begins at 00:00.
func TestDoesWhatTheSpecSays(t *testing.T) {
	hourly := func(*spec) {}
	legacy := eru("web", hourly)
	legacy.Annotations = legacy.SpecAnnotations()
	tests := map[string]reconciletest.Scenario{
		"requested": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")).Then(is("Deployment web")),
			ask("True").Then(is("Deployment web")),
			ask("true").Then(is("Deployment web", created)),
			edit("web", func(s *spec) { s.Enabled = true }).Then(is("Deployment web", "web: Running: Scheduled true Scheduled, requested, of web, next 00:00")),
			ask("no").Then(is("Deployment web", removed)),
			ask("true").Then(is("Deployment web", "web: Running: Scheduled true Scheduled, requested, of web, next 00:00")),
			edit("web", func(s *spec) { s.Enabled, s.Schedule = false, "5 * * * *" }).Then(is("Deployment web", "web: Stoping: Stopped true Disabled, requested, of web")).
				Then(history("web", "wait to start", `"0 0 * * *" in UTC`, "does not ask for it any more", `"0 0 * * *" in UTC`, "spec.enabled is false")),
			reconciletest.Delete(eru("web", hourly)).Then(is("Deployment web", created)),
		}},
		"legacy": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")), reconciletest.Create(legacy).Then(is("Deployment web", removed)),
		}},
		"taken": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("other")), reconciletest.Create(eru("web", func(s *spec) { s.DeploymentName, s.Enabled = "other", false })),
			reconciletest.Create(toRestart("web")).Then(is("Deployment other", "Deployment web", "web: Stoping: Stopped true Disabled, of other")),
		}, Unready: []reconciletest.Unready{{Object: plain("web"), Reason: "CreateEruFailed"}}},
		"recreated": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")), createFormer("nightly").Then(is("Deployment web", "nightly: Running: Scheduled true Scheduled, of keeper, of web, next 01:00")),
			disable("nightly").Then(history("nightly", "DeploymentRecreated: the owner was deleted", `"0 * * * *" in UTC`, "spec.enabled is false")),
		}},
		"schedule": {Actions: []reconciletest.Action{
			reconciletest.Create(eru("nightly", hourly)).Then(is(notFound)),
			reconciletest.Create(plain("web")).Then(is("Deployment web", scheduled+", next 01:00")),
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 01:00 at 01:00", complete+", next 02:00, last 01:00 at 01:00 Complete")),
			edit("nightly", func(s *spec) { s.Schedule = "30 * * * *" }).Then(is("Deployment web for 01:00 at 01:00", scheduled+", next 01:30, last 01:00 at 01:00 Complete")),
			edit("nightly", func(s *spec) { s.TimeZone = "Asia/Kolkata" }).Then(is("Deployment web for 01:00 at 01:00", scheduled+", next 02:00, last 01:00 at 01:00 Complete")),
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 02:00 at 02:00", complete+", next 03:00, last 02:00 at 02:00 Complete")),
			disable("nightly").Then(is("Deployment web for 02:00 at 02:00", disabled+", last 02:00 at 02:00 Complete")).
				Then(history("nightly", "no Deployment web: create it", `"0 * * * *" in UTC`, "2000-01-01T01:00:00Z", `"30 * * * *" in UTC`, `"30 * * * *" in Asia/Kolkata`, "2000-01-01T02:00:00Z", "")),
		}},
		"invalid": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")), reconciletest.Create(eru("nightly", func(s *spec) { s.HistoryLimit = 5 })),
			edit("nightly", func(s *spec) { s.Schedule = "@every 59s" }).Then(is("Deployment web", invalid+"Schedule, of web")),
			edit("nightly", func(s *spec) { s.Schedule = "hourly" }).Then(is("Deployment web", invalid+"Schedule, of web")),
			edit("nightly", func(s *spec) { s.Schedule, s.TimeZone = "@every 2h", "Mars" }).Then(is("Deployment web", invalid+"TimeZone, of web")),
			edit("nightly", func(s *spec) { s.TimeZone = "" }),
			disable("nightly").Then(is("Deployment web", disabled)).
				Then(history("nightly", "its shortest interval is 59s", `schedule "hourly"`, `timeZone "Mars"`, `"@every 2h" in UTC`, "spec.enabled is false")),
			edit("nightly", func(s *spec) { s.Schedule = "hourly" }).Then(is("Deployment web", disabled)),
		}},
		"spread": {Actions: []reconciletest.Action{ // The UID of this Eru spreads its restarts by 39 minutes.
			reconciletest.Create(plain("web")), reconciletest.Create(eru("nightly", func(s *spec) { s.SpreadSeconds = 3000 })),
			reconciletest.Wait(65 * time.Minute).Then(is("Deployment web", scheduled+", next 01:00")),
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 01:00 at 01:35", complete+", next 02:00, last 01:00 at 01:35 Complete")),
			restarted("web", "2000-01-01T02:10:00Z", ""),
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 02:10", skipped+"AlreadyRestarted, of web, next 03:00, last 02:00 at 01:35 Complete")),
			reconciletest.Change(eru("nightly", hourly), func(e *eruv1.Eru) { e.Status.LastRestartTime, e.Status.LastRolloutResult = nil, "InProgress" }).
				Then(is("Deployment web for 02:10", skipped+"AlreadyRestarted, of web, next 03:00, last 02:00 Unknown")),
			disable("nightly"),
		}},
		"blocked": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")), reconciletest.Create(eru("nightly", func(s *spec) { s.ConcurrencyPolicy = eruv1.ReplaceConcurrent })),
			change("web", func(d *appsv1.Deployment) { d.Spec.Paused = true }),
			reconciletest.Wait(time.Hour).Then(is("Deployment web", skipped+"DeploymentPaused, of web, next 02:00, last 01:00")),
			change("web", func(d *appsv1.Deployment) { d.Spec.Paused = false }), image("web", "registry.invalid/web:1"),
			edit("nightly", func(s *spec) { s.ConcurrencyPolicy = eruv1.ForbidConcurrent }),
			reconciletest.Wait(time.Hour).Then(is("Deployment web", skipped+"RolloutInProgress, of web, next 03:00, last 02:00")),
			edit("nightly", func(s *spec) { s.ConcurrencyPolicy, s.Schedule = eruv1.ReplaceConcurrent, "0 */4 * * *" }),
			reconciletest.Wait(2 * time.Hour).Then(is("Deployment web for 04:00 at 04:00", scheduled+", next 08:00, last 04:00 at 04:00 InProgress")),
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 04:00 at 04:00", unknown+", next 08:00, last 04:00 at 04:00 Unknown")),
			edit("nightly", func(s *spec) {
				s.BlackoutWindows, s.StartingDeadlineSeconds = []schedule.BlackoutWindow{{Start: "07:00", End: "09:00"}}, new(int64(600))
			}),
			reconciletest.Wait(4 * time.Hour).Then(is("Deployment web for 04:00 at 04:00", skipped+"TooLate, of web, next 12:00, last 08:00 at 04:00 Unknown, missed 1")),
			disable("nightly").Then(history("nightly", "", "01:00:00Z: it is paused", "02:00:00Z: it is still rolling out", `"0 */4 * * *"`, "04:00:00Z: it was still rolling out after 1h", `"0 */4 * * *"`, "08:00:00Z: its starting deadline passes", "")),
		}},
		"interval": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")), reconciletest.Create(eru("nightly", hourly)),
			restarted("web", "2000-01-01T00:59:30Z", ""),
			reconciletest.Wait(time.Hour).Then(started("web", "2000-01-01T01:00:00Z", "2000-01-01T01:00:30Z")),
			restarted("web", "2000-01-01T01:00:00Z", "2000-01-01T01:59:30Z"),
			reconciletest.Wait(time.Hour).Then(started("web", "2000-01-01T02:00:00Z", "2000-01-01T02:00:20Z")), // it may be ten seconds late
			restarted("web", "2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z"),
			reconciletest.Wait(time.Hour).Then(started("web", "2000-01-01T03:00:00Z", "2000-01-01T03:00:00Z")),
			restarted("web", "2000-01-01T04:00:00Z", ""), // and the operator has not recorded it
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 04:00", complete+", next 05:00, last 04:00 at 04:00 Complete")),
			disable("nightly").Then(history("nightly", "", "01:00:00Z: the Deployment was restarted less than 1m0s before", "01:00:00Z", "02:00:00Z: the Deployment was restarted less", "02:00:00Z", "03:00:00Z", "04:00:00Z", "")),
		}},
		"queue": {Actions: []reconciletest.Action{
			reconciletest.Create(plain("a")), reconciletest.Create(plain("b")), reconciletest.Create(eru("a", hourly)), reconciletest.Create(eru("b", hourly)),
			reconciletest.Wait(time.Hour).Then(is("Deployment a for 01:00 at 01:00", "Deployment b for 01:00 at 01:00", done("a", 1), done("b", 1))),
			reconciletest.Wait(time.Minute).Then(started("b", "2000-01-01T01:00:00Z", "2000-01-01T01:00:00Z")), // as soon as the rollout of a ends
			image("a", "registry.invalid/web:1"), edit("a", func(s *spec) { s.ConcurrencyPolicy = eruv1.ReplaceConcurrent }),
			reconciletest.Wait(time.Hour).Then(started("b", "2000-01-01T01:00:00Z", "2000-01-01T01:00:00Z")), // the rollout of a does not end
			image("a", "nginx:1.27").Then(is("Deployment a for 02:00 at 02:00", "Deployment b for 02:00 at 02:00", done("a", 2), done("b", 2))),
			restarted("a", "2000-01-01T02:59:30Z", ""),
			reconciletest.Wait(time.Hour).Then(started("a", "2000-01-01T03:00:00Z", "2000-01-01T03:00:30Z")).Then(started("b", "2000-01-01T03:00:00Z", "2000-01-01T03:00:00Z")),
			disable("a"), disable("b"),
		}},
		"rollout": {SimulatedControllers: []reconciletest.SimulatedController{{For: &appsv1.Deployment{}}}, Actions: []reconciletest.Action{
			reconciletest.Create(plain("web")), change("web", rolledOut),
			reconciletest.Create(eru("nightly", hourly)),
			change("web", func(d *appsv1.Deployment) { d.Spec.Template.Labels["colour"] = "red" }),
			reconciletest.Wait(time.Hour).Then(is("Deployment web", scheduled+", next 01:00")), // that change has not been observed
			change("web", rolledOut).Then(is("Deployment web for 01:00 at 01:00", scheduled+", next 02:00, last 01:00 at 01:00 InProgress")),
			change("web", func(d *appsv1.Deployment) {
				rolledOut(d)
				d.Status.UpdatedReplicas, d.Status.Conditions = 0, []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded"}}
			}).Then(is("Deployment web for 01:00 at 01:00", failed+", next 02:00, last 01:00 at 01:00 Failed")),
			reconciletest.Wait(time.Hour).Then(is("Deployment web for 02:00 at 02:00", failed+", next 03:00, last 02:00 at 02:00 InProgress")),
			reconciletest.Do("delete the Deployment alone", func(ctx context.Context, c client.Client) error {
				return c.Delete(ctx, plain("web"), client.PropagationPolicy(metav1.DeletePropagationOrphan))
			}).Then(is(notFound + ", last 02:00 at 02:00 Unknown")),
			reconciletest.Create(plain("web")).Then(is("Deployment web", scheduled+", next 03:00, last 02:00 at 02:00 Unknown")),
			disable("nightly").Then(history("nightly", "", "01:00:00Z: Progress deadline exceeded", "", "", "")),
		}},
	}
	var starts atomic.Int64
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			s.Horizon = 2 * time.Minute
			explore(t, s, prometheus.ObserverFunc(func(seconds float64) {
				if starts.Add(1); seconds < 0 || seconds > 600 {
					t.Errorf("a restart starts %v seconds late", seconds)
				}
			}))
		})
	}
	require.Positive(t, starts.Load(), "the lateness is observed")
}

// explore runs a scenario. One Deployment may roll out at a time, and each may be restarted once a minute.
func explore(t *testing.T, s reconciletest.Scenario, lateness prometheus.Observer) {
	t.Helper()
	s.Scheme, s.CRDs = runtime.NewScheme(), []string{"../config/crd/bases"}
	require.NoError(t, clientgoscheme.AddToScheme(s.Scheme))
	require.NoError(t, eruv1.AddToScheme(s.Scheme))
	s.Start = func(p *reconciletest.Process) error {
		return controller.SetupWithManager(p.Manager(controller.Cache()),
			restarts.Restarts{Clock: clock.RealClock{}, MaxConcurrent: 1, MinInterval: time.Minute, Lateness: lateness})
	}
	s.Options.WithoutFaults = true
	reconciletest.Explore(t, s)
}

// eru returns an Eru that restarts a Deployment each hour: the one of its name, or web if it is nightly.
func eru(name string, change func(s *spec)) *eruv1.Eru {
	e := newEru(name, spec{DeploymentName: name, Enabled: true, Schedule: "0 * * * *"})
	if name == "nightly" {
		e.Spec.DeploymentName = "web"
	}
	change(&e.Spec)
	return e
}

// plain returns a Deployment that requests nothing.
func plain(name string) *appsv1.Deployment {
	d := toRestart(name)
	d.Annotations = nil
	return d
}

// createFormer returns an action that creates an Eru whose owner is a former Deployment web. It has another owner too, so the garbage
// collector does not delete it.
func createFormer(name string) reconciletest.Action {
	return reconciletest.Do("create an Eru of the former Deployment", func(ctx context.Context, c client.Client) error {
		keeper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "keeper"}}
		err := c.Create(ctx, keeper)
		e := eru(name, func(*spec) {})
		e.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "former"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "keeper", UID: keeper.UID},
		}
		return errors.Join(err, c.Create(ctx, e))
	})
}

func edit(name string, edit func(s *spec)) reconciletest.Action {
	return reconciletest.Change(eru(name, func(*spec) {}), func(e *eruv1.Eru) { edit(&e.Spec) })
}

func disable(name string) reconciletest.Action {
	return edit(name, func(s *spec) { s.Enabled = false })
}

func change(name string, change func(d *appsv1.Deployment)) reconciletest.Action {
	return reconciletest.Change(plain(name), change)
}

func ask(value string) reconciletest.Action {
	return change("web", func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, eruv1.AnnotationEru, value) })
}

func image(name, image string) reconciletest.Action {
	return change(name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
}

// rolledOut sets the status of a Deployment that has rolled out.
func rolledOut(d *appsv1.Deployment) {
	d.Status = newDeployment("", nil).Status
	d.Status.ObservedGeneration = d.Generation
}

// restarted returns an action that writes when the Deployment was restarted.
func restarted(name, restartedAt, lastRestart string) reconciletest.Action {
	return change(name, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, workload.AnnotationRestartedAt, restartedAt)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, eruv1.AnnotationLastRestart, lastRestart)
	})
}
