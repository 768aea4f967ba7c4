package webhooks_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/webhooks"
	"github.com/opblocks/opblocks/schedule"
)

type spec = eruv1.EruSpec

func newEru(name string, s spec) *eruv1.Eru {
	return &eruv1.Eru{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: s}
}

func TestValidator(t *testing.T) {
	tests := map[string]struct {
		reason      string
		before, now spec
		update      bool
		want        string // the error, or the warnings
	}{
		"Valid": {
			reason: "all fields are as they should be",
			now:    spec{Schedule: "30 4 * * SUN", Options: schedule.Options{TimeZone: "Europe/Berlin", BlackoutWindows: []schedule.BlackoutWindow{{Start: "22:00", End: "06:00", Days: []string{"Sat"}}}}},
		},
		"Empty":    {reason: "the operator takes the default", now: spec{}},
		"Schedule": {reason: "it has four fields", now: spec{Schedule: "0 0 * *"}, want: `spec.schedule: Invalid value: "0 0 * *": it has 4 fields`},
		"Never":    {reason: "it has no time", now: spec{Schedule: "0 0 30 2 *"}, want: `spec.schedule: Invalid value: "0 0 30 2 *": it never comes`},
		"Disabled": {reason: "it would fail when somebody enables it", now: spec{Schedule: "daily", Enabled: false}, want: "spec.schedule: Invalid value"},
		"Interval": {reason: "the operator allows no shorter one", now: spec{Schedule: "@every 59s"}, want: "at least 1m0s is allowed"},
		"TimeZone": {reason: "it is not in the database", now: spec{Options: schedule.Options{TimeZone: "Mars"}}, want: `spec.timeZone: Invalid value: "Mars"`},
		"ZoneInSchedule": {
			reason: "it has its own field", now: spec{Schedule: "TZ=UTC 0 0 * * *"}, want: "write the time zone in its own field, timeZone",
		},
		"Window": {
			reason: "the pattern of the schema allows any word as a day",
			now:    spec{Options: schedule.Options{BlackoutWindows: []schedule.BlackoutWindow{{Start: "08:00", End: "09:00", Days: []string{"Lundi"}}}}},
			want:   `spec.blackoutWindows[0].days[0]: Invalid value: "Lundi"`,
		},
		"Deadline": {
			reason: "it is valid, and runs are lost", now: spec{Options: schedule.Options{StartingDeadlineSeconds: new(int64(1))}},
			want: "spec.startingDeadlineSeconds: runs are lost while the operator is busy for 1 s; write 10 or more",
		},
		"Untouched": {
			reason: "the operator's interval was shorter when it was created", update: true,
			before: spec{Schedule: "@every 30s"}, now: spec{Schedule: "@every 30s", Enabled: true},
			want: "warnings: spec.schedule: Invalid value",
		},
		"OtherField": {
			reason: "the time zone was valid", update: true,
			before: spec{Schedule: "@every 30s"}, now: spec{Schedule: "@every 30s", Options: schedule.Options{TimeZone: "Mars"}},
			want: `error: Eru.mtsre.meitu.com "web" is invalid: spec.timeZone: Invalid value: "Mars"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			validator := webhooks.Validator(time.Minute)
			now := newEru("web", tc.now)
			now.SetGroupVersionKind(eruv1.GroupVersion.WithKind("Eru"))
			warnings, err := validator.ValidateCreate(t.Context(), now)
			if tc.update {
				warnings, err = validator.ValidateUpdate(t.Context(), newEru("web", tc.before), now)
			}
			got := ""
			for _, w := range warnings {
				got += "warnings: " + w
			}
			if err != nil {
				got = "error: " + err.Error()
			}
			if tc.want == "" {
				assert.Empty(t, got, tc.reason)
			}
			assert.Contains(t, got, tc.want, tc.reason)
		})
	}
}

func TestDefaulter(t *testing.T) {
	tests := map[string]struct {
		reason string
		eru    *eruv1.Eru
		want   spec
	}{
		"Empty": {"both have a default", newEru("web", spec{}), spec{DeploymentName: "web", Options: schedule.Options{TimeZone: "UTC"}}},
		"Set": {
			"what the user has written stays", newEru("nightly", spec{DeploymentName: "web", Options: schedule.Options{TimeZone: "Asia/Tokyo"}}),
			spec{DeploymentName: "web", Options: schedule.Options{TimeZone: "Asia/Tokyo"}},
		},
		"GeneratedName": {"the name is generated later", newEru("", spec{}), spec{Options: schedule.Options{TimeZone: "UTC"}}},
		"Invalid": {
			"the validator says so, with the user's words", newEru("web", spec{Schedule: "daily", Options: schedule.Options{TimeZone: "Mars"}}),
			spec{DeploymentName: "web", Schedule: "daily", Options: schedule.Options{TimeZone: "Mars"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 { // it is idempotent
				require.NoError(t, webhooks.Defaulter{}.Default(t.Context(), tc.eru))
				assert.Empty(t, cmp.Diff(tc.want, tc.eru.Spec), tc.reason)
			}
		})
	}
}

// TestSameMeaning checks that an Eru restarts the same Deployment at the same times with its defaults and without them.
func TestSameMeaning(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	without := newEru("web", spec{Schedule: "30 4 * * *"})
	with := without.DeepCopy()
	require.NoError(t, webhooks.Defaulter{}.Default(t.Context(), with))
	assert.Equal(t, without.DeploymentName(), with.DeploymentName())
	first, err := without.Status.Decide(now, "uid", without.Spec.Schedule, without.Spec.Options)
	require.NoError(t, err)
	second, err := with.Status.Decide(now, "uid", with.Spec.Schedule, with.Spec.Options)
	require.NoError(t, err)
	assert.True(t, first.Next.Equal(second.Next))
}
