package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/schedule"
)

var kind = eruv1.GroupVersion.WithKind("Eru")

func TestSchema(t *testing.T) {
	u := newUser(t, apiServer(t))
	window := func(start, end string, days ...any) map[string]any {
		return map[string]any{"blackoutWindows": []any{map[string]any{"start": start, "end": end, "days": days}}}
	}
	long := strings.Repeat("x", 10_000)
	tests := map[string]struct {
		spec    map[string]any
		refused string // empty if it is accepted
		reason  string
	}{
		"nothing":            {reason: "everything has a default"},
		"all of it":          {spec: map[string]any{"deploymentname": "web", "enabled": true, "schedule": "@daily", "timeZone": "UTC", "startingDeadlineSeconds": 0, "spreadSeconds": 60, "concurrencyPolicy": "Replace", "historyLimit": 1}, reason: "all is well"},
		"long schedule":      {spec: map[string]any{"schedule": long}, refused: "spec.schedule: Too long: may not be more than 512 bytes", reason: "no schedule is so long"},
		"empty schedule":     {spec: map[string]any{"schedule": ""}, refused: "spec.schedule in body should be at least 1 chars long", reason: "leave it out for the default"},
		"schedule as number": {spec: map[string]any{"schedule": 5}, refused: "spec.schedule in body must be of type string", reason: "YAML"},
		"long zone":          {spec: map[string]any{"timeZone": long}, refused: "spec.timeZone: Too long: may not be more than 64 bytes", reason: "no zone is so long"},
		"long name":          {spec: map[string]any{"deploymentname": long}, refused: "spec.deploymentname: Too long: may not be more than 253 bytes", reason: "no Deployment is called so"},
		"no name":            {spec: map[string]any{"deploymentname": "Web_1"}, refused: "spec.deploymentname in body should match", reason: "no Deployment is called so"},
		"negative deadline":  {spec: map[string]any{"startingDeadlineSeconds": -1}, refused: "spec.startingDeadlineSeconds in body should be greater than or equal to 0", reason: "nothing could ever start"},
		"huge deadline":      {spec: map[string]any{"startingDeadlineSeconds": int64(1) << 62}, reason: "as good as none"},
		"negative spread":    {spec: map[string]any{"spreadSeconds": -1}, refused: "spec.spreadSeconds in body should be greater than or equal to 0", reason: "nothing starts before it is due"},
		"spread of a week":   {spec: map[string]any{"spreadSeconds": 604800}, refused: "spec.spreadSeconds in body should be less than or equal to 86400", reason: "that is another day"},
		"other policy":       {spec: map[string]any{"concurrencyPolicy": "Allow"}, refused: "spec.concurrencyPolicy: Unsupported value", reason: "two rollouts of one Deployment are one"},
		"no history":         {spec: map[string]any{"historyLimit": 0}, refused: "spec.historyLimit in body should be greater than or equal to 1", reason: "the state would not be told"},
		"endless history":    {spec: map[string]any{"historyLimit": 1000}, refused: "spec.historyLimit in body should be less than or equal to 100", reason: "it grows with each run"},
		"enabled as text":    {spec: map[string]any{"enabled": "true"}, refused: "spec.enabled in body must be of type boolean", reason: "YAML quotes slip in"},
		"window":             {spec: window("22:00", "06:00", "Mon", "tuesday"), reason: "past midnight, in any spelling"},
		"window to 24:00":    {spec: window("22:00", "24:00"), reason: "the end of the day"},
		"window from 24:00":  {spec: window("24:00", "06:00"), refused: "spec.blackoutWindows[0].start in body should match", reason: "that is the next day"},
		"window of 8 to 6":   {spec: window("8:00", "18:00"), refused: "spec.blackoutWindows[0].start in body should match", reason: "HH:MM"},
		"window without end": {spec: map[string]any{"blackoutWindows": []any{map[string]any{"start": "08:00"}}}, refused: "spec.blackoutWindows[0].end: Required value", reason: "it would never end"},
		"day as number":      {spec: window("08:00", "18:00", "1"), refused: "spec.blackoutWindows[0].days[0] in body should match", reason: "is that Monday?"},
		"many windows":       {spec: map[string]any{"blackoutWindows": manyWindows(65)}, refused: "spec.blackoutWindows: Too many: 65: must have at most 64 items", reason: "nobody could read them"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var spec any
			if tc.spec != nil {
				spec = tc.spec
			}
			u.AssertAdmission(t, kind, spec, tc.refused, tc.reason)
		})
	}
}

func manyWindows(n int) (windows []any) {
	for range n {
		windows = append(windows, map[string]any{"start": "08:00", "end": "18:00"})
	}
	return windows
}

// TestFormerFieldName writes spec.windows, the name that spec.blackoutWindows had before the first release. The README
// tells users what to write instead.
func TestFormerFieldName(t *testing.T) {
	u := newUser(t, apiServer(t))
	tests := map[string]struct {
		reason     string
		validation string
		warning    string
		refused    string
	}{
		"Warn":   {reason: "what the API server does by default", validation: metav1.FieldValidationWarn, warning: `unknown field "spec.windows"`},
		"Strict": {reason: "what kubectl asks for by default", validation: metav1.FieldValidationStrict, refused: `strict decoding error: unknown field "spec.windows"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			access, warnings := u.ControlPlane.Config(), &warnings{}
			access.WarningHandler = warnings
			c, err := client.New(access, client.Options{Scheme: scheme})
			require.NoError(t, err)
			eru := u.Untyped(kind, map[string]any{"windows": manyWindows(1)})
			err = c.Create(t.Context(), eru, client.FieldValidation(tc.validation))
			if tc.refused != "" {
				assert.ErrorContains(t, err, tc.refused, tc.reason)
				return
			}
			require.NoError(t, err, tc.reason)
			assert.Equal(t, []string{tc.warning}, warnings.texts, tc.reason)
			assert.NotContains(t, eru.Object["spec"], "windows", "the API server drops the field")
		})
	}
}

// warnings records the API server's warnings.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

func TestDeploymentNameIsImmutable(t *testing.T) {
	u := newUser(t, apiServer(t))
	u.create(t, "web", eruv1.EruSpec{})
	change := func(name string) error {
		eru := operatortest.Live(t, u, u.eru("web"))
		before := eru.DeepCopy()
		eru.Spec.DeploymentName = name
		return u.Patch(t.Context(), eru, client.MergeFrom(before))
	}
	require.NoError(t, change("web"), "it was not set before")
	for _, name := range []string{"other", ""} {
		err := change(name)
		require.True(t, apierrors.IsInvalid(err), "%q: %v", name, err)
		assert.ErrorContains(t, err, "deploymentname cannot be changed: create another Eru")
	}
	err := u.Patch(t.Context(), u.eru("web"), client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/spec"}]`)))
	require.True(t, apierrors.IsInvalid(err), "without a spec it would be unset: %v", err)
	u.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled = true })
}

// TestStoredByTheArticle checks that the schema accepts a status that the article's operator wrote.
func TestStoredByTheArticle(t *testing.T) {
	u := newUser(t, apiServer(t))
	u.create(t, "web", eruv1.EruSpec{DeploymentName: "web"})
	status := []byte(`{"status":{"phase":"Whatever","conditions":[
		{"ready":true,"reason":"create eru cr success,wait to start","message":"create eru cr success,wait to start","lastedTranslationTime":null},
		{"ready":false,"reason":"x","message":"y","lastedTranslationTime":null}]}}`)
	require.NoError(t, u.Status().Patch(t.Context(), u.eru("web"), client.RawPatch("application/merge-patch+json", status)))
	eru := operatortest.Live(t, u, u.eru("web"))
	require.Len(t, eru.Status.Conditions, 2)
	assert.Nil(t, eru.Status.Conditions[0].LastedTranslationTime)
	assert.Equal(t, "Whatever", eru.Status.Phase, "no enum")
}

// TestInvalid covers specs that the schema accepts and the operator refuses: the condition names the field, its value and what
// to write; other Erus are reconciled; and a valid spec ends the condition.
func TestInvalid(t *testing.T) {
	u := newUser(t, apiServer(t))
	r, clock := stepped()
	o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	with := func(edit func(*eruv1.EruSpec)) eruv1.EruSpec {
		spec := enabled("web", "0 4 * * *")
		edit(&spec)
		return spec
	}
	at := func(text string) eruv1.EruSpec { return enabled("web", text) }
	tests := map[string]struct {
		spec   eruv1.EruSpec
		reason string
		says   []string
	}{
		"zone-alone":    {at("TZ=UTC"), "InvalidSchedule", []string{`schedule "TZ=UTC"`, "it must not contain a time zone"}},
		"zone-inside":   {at("CRON_TZ=Asia/Tokyo 0 4 * * *"), "InvalidSchedule", []string{"it must not contain a time zone"}},
		"never":         {at("0 0 30 2 *"), "InvalidSchedule", []string{"it never comes"}},
		"seconds":       {at("0 0 4 * * *"), "InvalidSchedule", []string{"it has 6 fields", "there is no field for seconds"}},
		"empty-fields":  {at("     "), "InvalidSchedule", []string{"it is empty"}},
		"out-of-range":  {at("60 4 * * *"), "InvalidSchedule", []string{`minute "60"`}},
		"sunday":        {at("0 4 * * 7"), "InvalidSchedule", []string{`day of week "7"`}},
		"nonsense":      {at("at four"), "InvalidSchedule", []string{"it has 2 fields"}},
		"reboot":        {at("@reboot"), "InvalidSchedule", []string{"@reboot"}},
		"every-nothing": {at("@every 0s"), "InvalidSchedule", []string{"not an interval"}},
		"every-back":    {at("@every -1h"), "InvalidSchedule", []string{"not an interval"}},
		"unicode":       {at("０ ４ ＊ ＊ ＊"), "InvalidSchedule", []string{"a character that is not allowed"}},
		"unknown-zone":  {with(func(s *eruv1.EruSpec) { s.TimeZone = "Europe/Atlantis" }), "InvalidTimeZone", []string{`timeZone "Europe/Atlantis"`, "there is no such zone"}},
		"local-zone":    {with(func(s *eruv1.EruSpec) { s.TimeZone = "Local" }), "InvalidTimeZone", []string{`timeZone "Local"`}},
		"path-zone":     {with(func(s *eruv1.EruSpec) { s.TimeZone = "../../etc/passwd" }), "InvalidTimeZone", []string{"there is no such zone"}},
		"always-closed": {with(func(s *eruv1.EruSpec) { s.BlackoutWindows = []schedule.BlackoutWindow{{Start: "00:00", End: "24:00"}} }), "InvalidBlackoutWindows", []string{"they cover the whole week"}},
		"closed-by-two": {with(func(s *eruv1.EruSpec) {
			s.BlackoutWindows = []schedule.BlackoutWindow{{Start: "06:00", End: "20:00"}, {Start: "20:00", End: "06:00"}}
		}), "InvalidBlackoutWindows", []string{"they cover the whole week"}},
		"window-of-none": {with(func(s *eruv1.EruSpec) { s.BlackoutWindows = []schedule.BlackoutWindow{{Start: "06:00", End: "06:00"}} }), "InvalidBlackoutWindows", []string{"blackoutWindows[0].end", "it equals start"}},
		"no-day": {with(func(s *eruv1.EruSpec) {
			s.BlackoutWindows = []schedule.BlackoutWindow{{Start: "06:00", End: "07:00", Days: []string{"Someday"}}}
		}), "InvalidBlackoutWindows", []string{`blackoutWindows[0].days[0] "Someday"`}},
	}
	u.rolledOut(t, "web", false)
	for name, tc := range tests {
		u.create(t, name, tc.spec)
	}
	u.create(t, "good", at("0 4 * * *"))
	for name, tc := range tests {
		eru := u.becomes(t, name, "Failure: Valid false "+tc.reason)
		for _, says := range tc.says {
			assert.Contains(t, eru.LastCondition().Message, says, name)
		}
		assert.Nil(t, eru.Status.NextScheduleTime, name)
	}
	u.becomes(t, "good", scheduled)
	clock.SetTime(four)
	o.Pass(t, u, u.eru("good"))
	assert.Equal(t, "2026-03-02T04:00:00Z", u.restartedAt(t, "web"), "others go on")

	for name := range tests {
		u.set(t, name, func(s *eruv1.EruSpec) { s.Schedule, s.TimeZone, s.BlackoutWindows = "@daily", "", nil })
		u.becomes(t, name, scheduled)
	}
}

// TestDeploymentUnderTheEru pauses, deletes and orphans Deployments: the condition shows it, and other Erus go on.
func TestDeploymentUnderTheEru(t *testing.T) {
	u := newUser(t, cluster(t))
	startOperator(t, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	for _, name := range []string{"paused", "renamed", "other"} {
		u.deploy(t, name, false)
		u.create(t, name, enabled("", "@every 4s"))
	}
	u.restarts(t, "paused", "")
	operatortest.Change(t, u, u.Deployment("paused"), func(d *appsv1.Deployment) { d.Spec.Paused = true })
	u.becomes(t, "paused", "Running: Restarted false SkippedDeploymentPaused")
	before := u.restartedAt(t, "other")
	operatortest.Eventually(t, "others go on", func(c *assert.CollectT) { assert.NotEqual(c, before, u.restartedAt(c, "other")) })
	stopped := u.restartedAt(t, "paused")
	operatortest.Change(t, u, u.Deployment("paused"), func(d *appsv1.Deployment) { d.Spec.Paused = false })
	u.restarts(t, "paused", stopped)

	// To rename a Deployment is to delete it, with which its Eru goes.
	require.NoError(t, u.Delete(t.Context(), u.Deployment("renamed")))
	u.deploy(t, "new-name", false)
	u.Gone(t, u.eru("renamed"))

	// Orphaned, the Eru stays, waits, and is bound to the next one of that name.
	require.NoError(t, u.Delete(t.Context(), u.Deployment("other"), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	eru := u.becomes(t, "other", missing)
	assert.Contains(t, eru.LastCondition().Message, "there is no Deployment other: create it")
}

// TestDeploymentRecreated recreates a Deployment before the garbage collector notices: it is not the one that the Eru is for.
func TestDeploymentRecreated(t *testing.T) {
	u := newUser(t, apiServer(t)) // which collects nothing
	r, clock := stepped()
	o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.rolledOut(t, "web", false)
	u.create(t, "web", enabled("", "0 4 * * *"))
	u.becomes(t, "web", scheduled)
	require.NoError(t, u.Delete(t.Context(), u.Deployment("web")))
	u.becomes(t, "web", missing)
	u.rolledOut(t, "web", false)
	eru := u.becomes(t, "web", "Stoping: Valid false DeploymentRecreated")
	assert.Contains(t, eru.LastCondition().Message, "create another one for the new Deployment")
	clock.SetTime(four)
	o.Pass(t, u, eru)
	assert.Empty(t, u.restartedAt(t, "web"))
}
