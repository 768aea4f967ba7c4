package controller_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// harness is the operator with controller-runtime's fake client, and a clock that the test sets. It counts writes.
type harness struct {
	client.Client
	clock       *clocktesting.FakePassiveClock
	deployments ctrlreconcile.Reconciler
	erus        ctrlreconcile.Reconciler
	after       time.Duration // RequeueAfter of the last pass over an Eru
	writes      int
	fail        func(obj client.Object) error // called before each write
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newHarness(t *testing.T, maxConcurrent int, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, eruv1.AddToScheme(scheme))
	h := &harness{clock: clocktesting.NewFakePassiveClock(noon), fail: func(client.Object) error { return nil }}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&eruv1.Eru{}, &appsv1.Deployment{}).Build()
	r := restarts.Restarts{Clock: h.clock, MaxConcurrent: maxConcurrent, MinInterval: time.Minute}
	h.deployments = reconcile.New(h.counting(), controller.DeploymentSteps()...).WithoutStatus()
	h.erus = reconcile.New(h.counting(), controller.EruSteps(r)...).WithClock(h.clock).
		WithHistory(func(eru *eruv1.Eru) conditions.List { return eru.History(h.clock.Now) })
	return h
}

// counting returns the client of the operator. Writes of the test itself are not counted.
func (h *harness) counting() client.Client {
	write := func(obj client.Object, send func() error) error {
		if err := h.fail(obj); err != nil {
			return err
		}
		h.writes++
		return send()
	}
	return interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// pass runs one pass over the Deployment and one over the Eru of a name, and returns the Eru after them.
func (h *harness) pass(t *testing.T, name string) *eruv1.Eru {
	t.Helper()
	h.writes = 0
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: name}}
	_, err := h.deployments.Reconcile(t.Context(), request)
	require.NoError(t, err)
	result, err := h.erus.Reconcile(t.Context(), request)
	require.NoError(t, err)
	h.after = result.RequeueAfter
	eru := &eruv1.Eru{}
	require.NoError(t, client.IgnoreNotFound(h.Get(t.Context(), request.NamespacedName, eru)))
	return eru
}

// at sets the clock and runs a pass.
func (h *harness) at(t *testing.T, moment time.Time, name string) *eruv1.Eru {
	t.Helper()
	h.clock.SetTime(moment)
	return h.pass(t, name)
}

// set edits the spec of an Eru and runs a pass.
func (h *harness) set(t *testing.T, name string, edit func(*eruv1.EruSpec)) *eruv1.Eru {
	t.Helper()
	eru := &eruv1.Eru{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, eru))
	edit(&eru.Spec)
	eru.Generation++
	require.NoError(t, h.Update(t.Context(), eru))
	return h.pass(t, name)
}

// forge edits the status of an Eru, as a user with the right to write it can.
func (h *harness) forge(t *testing.T, name string, edit func(*eruv1.EruStatus)) {
	t.Helper()
	eru := &eruv1.Eru{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, eru))
	edit(&eru.Status)
	require.NoError(t, h.Status().Update(t.Context(), eru))
}

func (h *harness) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, d))
	return d
}

// edit edits a Deployment, including its status.
func (h *harness) edit(t *testing.T, name string, edit func(*appsv1.Deployment)) {
	t.Helper()
	d := h.deployment(t, name)
	edit(d)
	status := d.Status
	require.NoError(t, h.Update(t.Context(), d))
	d.Status = status
	require.NoError(t, h.Status().Update(t.Context(), d))
}

// restartedAt returns the due time of the last restart, as the Deployment has it.
func (h *harness) restartedAt(t *testing.T, name string) string {
	t.Helper()
	return h.deployment(t, name).Spec.Template.Annotations[workload.AnnotationRestartedAt]
}

// newDeployment returns a Deployment that has rolled out, with a UID, which the fake client does not set.
func newDeployment(name string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-deployment", Annotations: annotations},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{
			Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: "True"}, {Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
			},
		},
	}
}

func newEru(name string, spec eruv1.EruSpec) *eruv1.Eru {
	return &eruv1.Eru{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-eru", Generation: 1}, Spec: spec}
}

// state returns the phase and the last condition.
func state(eru *eruv1.Eru) string {
	last := eru.LastCondition()
	ready := "false"
	if last.Ready {
		ready = "true"
	}
	return eru.Status.Phase + ": " + last.Type + " " + ready + " " + last.Reason
}

var (
	asked = map[string]string{eruv1.AnnotationEru: "true"}
	daily = eruv1.EruSpec{Enabled: true, Schedule: "0 4 * * *"}
	four  = time.Date(2026, 3, 2, 4, 0, 0, 0, time.UTC)
)

func TestRequested(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", asked))
	eru := h.pass(t, "web")
	assert.Equal(t, map[string]string{
		"mtsre.meitu.com/deploymentName": `"web"`, "mtsre.meitu.com/enabled": "false", "mtsre.meitu.com/schedule": `"0 0 * * *"`,
	}, eru.Annotations)
	assert.Equal(t, map[string]string{"mtsre.meitu.com/created-by": "eru-operator"}, eru.Labels)
	assert.Equal(t, eruv1.EruSpec{DeploymentName: "web", Schedule: "0 0 * * *"}, eru.Spec)
	require.Len(t, eru.OwnerReferences, 1)
	assert.Equal(t, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-of-deployment", Controller: new(false)}, eru.OwnerReferences[0])
	assert.Equal(t, "Stoping", eru.Status.Phase)
	const words = "create eru cr success,wait to start"
	require.Len(t, eru.Status.Conditions, 1)
	assert.True(t, eru.Status.Conditions[0].LastedTranslationTime.Time.Equal(noon))
	eru.Status.Conditions[0].LastedTranslationTime = nil
	assert.Equal(t, eruv1.EruCondition{Type: "Created", Ready: true, Reason: words, Message: words}, eru.Status.Conditions[0])
	assert.Equal(t, 2, h.writes, "the Eru and its status")
	h.pass(t, "web")
	assert.Zero(t, h.writes, "nothing has changed")

	eru = h.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled = true })
	assert.Equal(t, "Running: Scheduled true Scheduled", state(eru))
	assert.Equal(t, "true", eru.Annotations["mtsre.meitu.com/enabled"])
	assert.True(t, eru.Status.NextScheduleTime.Time.Equal(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)))

	h.edit(t, "web", func(d *appsv1.Deployment) { d.Annotations = map[string]string{eruv1.AnnotationEru: "no"} })
	eru = h.pass(t, "web")
	assert.Equal(t, "Stoping: Stopped true AnnotationRemoved", state(eru))
	assert.True(t, eru.Spec.Enabled, "the user's schedule stays")
	assert.Nil(t, eru.Status.NextScheduleTime)
	assert.Zero(t, h.after)

	h.edit(t, "web", func(d *appsv1.Deployment) { d.Annotations = asked })
	eru = h.pass(t, "web")
	assert.Equal(t, "Running: Scheduled true Scheduled", state(eru))
	eru = h.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled = false })
	assert.Equal(t, "Stoping: Stopped true Disabled", state(eru))
}

func TestNotRequested(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {eruv1.AnnotationEru: "false"}, {eruv1.AnnotationEru: "True"}} {
		h := newHarness(t, 0, newDeployment("web", annotations))
		assert.Empty(t, h.pass(t, "web").Name)
		assert.Zero(t, h.writes)
	}
}

func TestCreateFails(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", asked))
	h.fail = func(obj client.Object) error { return apierrors.NewInternalError(assert.AnError) }
	assert.Empty(t, h.pass(t, "web").Name, "and no status is written to what does not exist")
	h.fail = func(client.Object) error { return nil }
	assert.Equal(t, "web", h.pass(t, "web").Name)
}

func TestRestart(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", nil), newEru("nightly", eruv1.EruSpec{DeploymentName: "web", Enabled: true, Schedule: "0 4 * * *"}))
	eru := h.pass(t, "nightly")
	assert.Equal(t, "Running: Scheduled true Scheduled", state(eru), "made by hand, it needs no annotation")
	assert.Len(t, eru.OwnerReferences, 1)
	assert.Equal(t, 10*time.Minute, h.after, "or less: timers do not see clocks that are set")
	eru = h.pass(t, "nightly")
	assert.Equal(t, `"web"`, eru.Annotations["mtsre.meitu.com/deploymentName"])
	assert.Equal(t, 1, h.writes)
	h.pass(t, "nightly")
	assert.Zero(t, h.writes)

	h.at(t, four.Add(-time.Second), "nightly")
	assert.Equal(t, time.Second, h.after)
	assert.Empty(t, h.restartedAt(t, "web"))

	eru = h.at(t, four.Add(30*time.Second), "nightly")
	assert.Equal(t, "2026-03-02T04:00:00Z", h.restartedAt(t, "web"), "the time that was due, not the operator's")
	assert.Equal(t, "InProgress", eru.Status.LastRolloutResult)
	assert.True(t, eru.Status.LastScheduleTime.Time.Equal(four))
	assert.True(t, eru.Status.LastRestartTime.Time.Equal(four.Add(30*time.Second)))
	assert.True(t, eru.Status.NextScheduleTime.Time.Equal(four.Add(24*time.Hour)))
	assert.Equal(t, 2, h.writes, "the restart and the status")

	eru = h.pass(t, "nightly")
	assert.Equal(t, "Complete", eru.Status.LastRolloutResult, "the fake client counts no generations")
	assert.Equal(t, "Running: Restarted true RolloutComplete", state(eru))
	h.pass(t, "nightly")
	assert.Zero(t, h.writes)
	h.at(t, four.Add(24*time.Hour), "nightly")
	eru = h.pass(t, "nightly")
	assert.Len(t, eru.Status.Conditions, 3, "each restart has a condition, though with the same words")
}

func TestStart(t *testing.T) {
	rolling := func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }
	restarted := func(at string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: at}
		}
	}
	tests := map[string]struct {
		reason     string
		edit       func(*appsv1.Deployment)
		spec       func(*eruv1.EruSpec)
		late       time.Duration
		want       string
		isRestart  bool
		missed     int64
		inProgress bool
	}{
		"on time": {reason: "nothing is in the way", want: "Running: Scheduled true Scheduled", isRestart: true, inProgress: true},
		"before a crash": {
			reason: "it was restarted, but that was not recorded", edit: restarted("2026-03-02T04:00:00Z"),
			want: "Running: Scheduled true Scheduled", inProgress: true,
		},
		"by hand since": {
			reason: "the pods are new already", edit: restarted("2026-03-02T04:00:01Z"), late: time.Minute,
			want: "Running: Restarted false SkippedAlreadyRestarted",
		},
		"by hand before": {reason: "that was not for this time", edit: restarted("2026-03-02T03:59:00Z"), want: "Running: Scheduled true Scheduled", isRestart: true, inProgress: true},
		"paused": {
			reason: "nothing would be rolled out", edit: func(d *appsv1.Deployment) { d.Spec.Paused = true },
			want: "Running: Restarted false SkippedDeploymentPaused",
		},
		"paused and Replace": {
			reason: "under both policies", edit: func(d *appsv1.Deployment) { d.Spec.Paused = true },
			spec: func(s *eruv1.EruSpec) { s.ConcurrencyPolicy = "Replace" }, want: "Running: Restarted false SkippedDeploymentPaused",
		},
		"rolling out": {reason: "Forbid is the default", edit: rolling, want: "Running: Restarted false SkippedRolloutInProgress"},
		"rolling out and Replace": {
			reason: "the user wants so", edit: rolling, spec: func(s *eruv1.EruSpec) { s.ConcurrencyPolicy = "Replace" },
			want: "Running: Scheduled true Scheduled", isRestart: true, inProgress: true,
		},
		"down for days": {
			reason: "one restart for the last time that was due", late: 72 * time.Hour, missed: 3,
			want: "Running: Scheduled true Scheduled", isRestart: true, inProgress: true,
		},
		"down for days with a deadline": {
			reason: "none if the last one is too late too", late: 73 * time.Hour, missed: 4,
			spec: func(s *eruv1.EruSpec) { s.StartingDeadlineSeconds = new(int64(600)) },
			want: "Running: Restarted false SkippedTooLate",
		},
		"in a window, with a deadline": {
			reason: "it could start only after its deadline, which is certain at once", missed: 1, spec: func(s *eruv1.EruSpec) {
				s.BlackoutWindows, s.StartingDeadlineSeconds = []schedule.BlackoutWindow{{Start: "03:00", End: "05:00"}}, new(int64(600))
			},
			want: "Running: Restarted false SkippedTooLate",
		},
		"in a window": {
			reason: "it waits for the end", spec: func(s *eruv1.EruSpec) { s.BlackoutWindows = []schedule.BlackoutWindow{{Start: "03:00", End: "05:00"}} },
			want: "Running: Scheduled true Scheduled",
		},
		"before its place": {
			reason: "the spread comes on top", spec: func(s *eruv1.EruSpec) { s.SpreadSeconds = 86400 },
			want: "Running: Scheduled true Scheduled",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			eru := newEru("web", daily)
			if tc.spec != nil {
				tc.spec(&eru.Spec)
			}
			h := newHarness(t, 0, newDeployment("web", nil), eru)
			h.pass(t, "web")
			if tc.edit != nil {
				h.edit(t, "web", tc.edit)
			}
			before := h.restartedAt(t, "web")
			eru = h.at(t, four.Add(tc.late), "web")
			assert.Equal(t, tc.want, state(eru), tc.reason)
			assert.Equal(t, tc.isRestart, before != h.restartedAt(t, "web"), tc.reason)
			assert.Equal(t, tc.missed, eru.Status.MissedRuns, tc.reason)
			assert.Equal(t, tc.inProgress, eru.Status.LastRolloutResult == "InProgress", tc.reason)
			assert.Positive(t, h.after)

			h.pass(t, "web")
			h.pass(t, "web")
			assert.Zero(t, h.writes, "in the end nothing is left to write")
		})
	}
}

func TestObserveRollout(t *testing.T) {
	tests := map[string]struct {
		reason string
		edit   func(*appsv1.Deployment)
		later  time.Duration
		want   string
		result string
	}{
		"on its way": {"nobody knows yet", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, 0, "Running: Scheduled true Scheduled", "InProgress"},
		"failed": {"Kubernetes gave up", func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas = 0
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded"}}
		}, 0, "Running: Restarted false RolloutFailed", "Failed"},
		"paused":    {"nothing comes of it", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas, d.Spec.Paused = 0, true }, 0, "Running: Restarted false RolloutUnknown", "Unknown"},
		"undone":    {"kubectl rollout undo", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, 2 * time.Minute, "Running: Restarted false RolloutUnknown", "Unknown"},
		"not shown": {"the cache is behind", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, time.Second, "Running: Scheduled true Scheduled", "InProgress"},
		"endless":   {"no deadline for its progress", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, 2 * time.Hour, "Running: Restarted false RolloutUnknown", "Unknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 0, newDeployment("web", nil), newEru("web", daily))
			h.pass(t, "web")
			h.at(t, four, "web")
			h.edit(t, "web", tc.edit)
			eru := h.at(t, four.Add(tc.later), "web")
			assert.Equal(t, tc.want, state(eru), tc.reason)
			assert.Equal(t, tc.result, eru.Status.LastRolloutResult, tc.reason)
			assert.NotEmpty(t, h.after, "every wait ends")
			h.pass(t, "web")
			assert.Zero(t, h.writes)
		})
	}
}

func TestStates(t *testing.T) {
	tests := map[string]struct {
		reason string
		spec   eruv1.EruSpec
		want   string
		says   string
	}{
		"disabled":         {"made by hand, and not enabled", eruv1.EruSpec{}, "Stoping: Stopped true Disabled", "spec.enabled"},
		"default":          {"midnight", eruv1.EruSpec{Enabled: true}, "Running: Scheduled true Scheduled", `"0 0 * * *" in UTC`},
		"zone":             {"it is shown", eruv1.EruSpec{Enabled: true, Options: schedule.Options{TimeZone: "Asia/Shanghai"}}, "Running: Scheduled true Scheduled", "Asia/Shanghai"},
		"no schedule":      {"field and parser's words", eruv1.EruSpec{Enabled: true, Schedule: "hourly"}, "Failure: Valid false InvalidSchedule", `schedule "hourly"`},
		"too often":        {"with Replace it would restart without end", eruv1.EruSpec{Enabled: true, Schedule: "@every 1s", ConcurrencyPolicy: "Replace"}, "Failure: Valid false InvalidSchedule", `schedule "@every 1s": its shortest interval is 1s, and at least 1m0s is allowed; write a longer interval`},
		"each minute":      {"that is the least", eruv1.EruSpec{Enabled: true, Schedule: "@every 1m"}, "Running: Scheduled true Scheduled", `"@every 1m" in UTC`},
		"zone inside":      {"there is a field for it", eruv1.EruSpec{Enabled: true, Schedule: "TZ=UTC 0 0 * * *"}, "Failure: Valid false InvalidSchedule", "time zone"},
		"unknown zone":     {"", eruv1.EruSpec{Enabled: true, Options: schedule.Options{TimeZone: "Mars"}}, "Failure: Valid false InvalidTimeZone", `timeZone "Mars"`},
		"always closed":    {"", eruv1.EruSpec{Enabled: true, Options: schedule.Options{BlackoutWindows: []schedule.BlackoutWindow{{Start: "00:00", End: "24:00"}}}}, "Failure: Valid false InvalidBlackoutWindows", "blackoutWindows"},
		"negative":         {"the schema refuses it", eruv1.EruSpec{Enabled: true, Options: schedule.Options{StartingDeadlineSeconds: new(int64(-1))}}, "Failure: Valid false InvalidStartingDeadlineSeconds", "startingDeadlineSeconds -1"},
		"no Deployment":    {"", eruv1.EruSpec{Enabled: true, DeploymentName: "none"}, "Stoping: Valid false DeploymentNotFound", "no Deployment none"},
		"disabled and bad": {"nobody asked for it", eruv1.EruSpec{Schedule: "hourly"}, "Stoping: Stopped true Disabled", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 0, newDeployment("web", nil), newEru("web", tc.spec))
			eru := h.pass(t, "web")
			assert.Equal(t, tc.want, state(eru), tc.reason)
			assert.Contains(t, eru.LastCondition().Message, tc.says)
			assert.EqualValues(t, 1, eru.Status.ObservedGeneration)
			h.pass(t, "web")
			h.pass(t, "web")
			assert.Zero(t, h.writes)

			eru = h.set(t, "web", func(s *eruv1.EruSpec) { *s = daily })
			assert.Equal(t, "Running: Scheduled true Scheduled", state(eru), "it heals on change")
		})
	}
}

func TestScheduleChange(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", nil), newEru("web", eruv1.EruSpec{Enabled: false, Schedule: "0 4 * * *"}))
	h.pass(t, "web")
	h.clock.SetTime(four.Add(time.Hour))
	h.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled = true })
	h.clock.SetTime(four.Add(2 * time.Hour))
	h.set(t, "web", func(s *eruv1.EruSpec) { s.Schedule = "0 5 * * *" })
	h.set(t, "web", func(s *eruv1.EruSpec) { s.TimeZone = "Asia/Shanghai" })
	eru := h.set(t, "web", func(s *eruv1.EruSpec) { s.BlackoutWindows = []schedule.BlackoutWindow{{Start: "01:00", End: "02:00"}} })
	assert.Empty(t, h.restartedAt(t, "web"))
	assert.True(t, eru.Status.ScheduleSince.Time.Equal(four.Add(2*time.Hour)))
	h.clock.SetTime(four.Add(3 * time.Hour))
	eru = h.set(t, "web", func(s *eruv1.EruSpec) { s.HistoryLimit = 3 })
	assert.True(t, eru.Status.ScheduleSince.Time.Equal(four.Add(2*time.Hour)), "that is not the schedule")
	assert.LessOrEqual(t, len(eru.Status.Conditions), 4)
}

func TestDeploymentRecreated(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", nil), newEru("web", daily))
	h.pass(t, "web")
	require.NoError(t, h.Delete(t.Context(), h.deployment(t, "web")))
	assert.Equal(t, "Stoping: Valid false DeploymentNotFound", state(h.pass(t, "web")))
	d := newDeployment("web", nil)
	d.UID = "another"
	require.NoError(t, h.Create(t.Context(), d))
	assert.Equal(t, "Stoping: Valid false DeploymentRecreated", state(h.at(t, four, "web")))
	assert.Empty(t, h.restartedAt(t, "web"), "it is not the one that somebody wanted to be restarted")
}

// TestLegacyEru reconciles an Eru of the article's operator: it has the annotations, no label, and a condition without type and
// time.
func TestLegacyEru(t *testing.T) {
	eru := newEru("web", eruv1.EruSpec{DeploymentName: "web", Enabled: true, Schedule: "0 4 * * *"})
	eru.Annotations = eru.SpecAnnotations()
	eru.Status = eruv1.EruStatus{Phase: "Stoping", Conditions: []eruv1.EruCondition{{Ready: true, Reason: eruv1.ReasonCreated, Message: eruv1.ReasonCreated}}}
	h := newHarness(t, 0, newDeployment("web", nil), eru)
	got := h.pass(t, "web")
	assert.Equal(t, "eru-operator", got.Labels[eruv1.LabelCreatedBy])
	assert.Equal(t, "Stoping: Stopped true AnnotationRemoved", state(got), "the annotation was removed while no operator ran")
	assert.Len(t, got.Status.Conditions, 2, "earlier conditions stay")
}

func TestManualEruIsNotLegacy(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", nil), newEru("web", eruv1.EruSpec{DeploymentName: "web", Enabled: true}))
	for range 3 {
		eru := h.pass(t, "web")
		assert.Empty(t, eru.Labels)
		assert.Equal(t, "Running", eru.Status.Phase)
	}
}

// TestMaxConcurrent checks that no Deployment is restarted twice or beyond the limit, in any order of passes.
func TestMaxConcurrent(t *testing.T) {
	names := []string{"a", "b", "c", "paused"}
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, newDeployment(name, nil), newEru(name, daily))
	}
	h := newHarness(t, 1, objects...)
	for _, name := range names {
		h.pass(t, name)
	}
	h.edit(t, "paused", func(d *appsv1.Deployment) { d.Spec.Paused = true })
	for _, name := range names {
		h.edit(t, name, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 })
		_ = h.set(t, name, func(s *eruv1.EruSpec) { s.ConcurrencyPolicy = "Replace" })
	}
	h.clock.SetTime(four)
	for _, name := range []string{"c", "b", "paused", "a", "b", "c"} {
		h.pass(t, name)
	}
	assert.Equal(t, []string{"2026-03-02T04:00:00Z", "", "", ""}, h.all(t, names))
	assert.Equal(t, time.Minute, h.after)
	h.edit(t, "a", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 })
	for _, name := range []string{"c", "b", "a", "b", "c"} {
		h.pass(t, name)
	}
	assert.Equal(t, []string{"2026-03-02T04:00:00Z", "2026-03-02T04:00:00Z", "", ""}, h.all(t, names))
}

func (h *harness) all(t *testing.T, names []string) (times []string) {
	t.Helper()
	for _, name := range names {
		times = append(times, h.restartedAt(t, name))
	}
	return times
}
