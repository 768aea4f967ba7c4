package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/ownedresources/workload"
)

const delayed = "Running: Restarted false DelayedByMinInterval"

// TestMinInterval covers what a Deployment can show of its last restart when the next one is due at 04:00. The minimum interval is a
// minute.
func TestMinInterval(t *testing.T) {
	const started = "Running: Scheduled true Scheduled"
	tests := map[string]struct {
		reason      string
		lastRestart string // when the operator restarted it
		restartedAt string // the due time of that restart, or the time of a restart by hand
		want        string
		until       time.Time // the end of the delay
	}{
		"no restart before": {reason: "nothing is known", want: started},
		"by the operator": {
			reason: "a minute has not passed", lastRestart: "2026-03-02T03:59:20Z", restartedAt: "2026-03-02T03:59:00Z",
			want: delayed, until: four.Add(10 * time.Second),
		},
		"a little late": {
			reason: "or each later one would be late too", lastRestart: "2026-03-02T03:59:10Z", restartedAt: "2026-03-02T03:59:00Z",
			want: started,
		},
		"a minute ago": {reason: "that is allowed", lastRestart: "2026-03-02T03:59:00Z", restartedAt: "2026-03-02T03:59:00Z", want: started},
		"long after its due time": {
			reason: "the start counts, and not the due time", lastRestart: "2026-03-02T03:59:59Z", restartedAt: "2026-03-01T09:00:00Z",
			want: delayed, until: four.Add(49 * time.Second),
		},
		"by hand":               {reason: "the pods were replaced as well", restartedAt: "2026-03-02T03:59:30Z", want: delayed, until: four.Add(30 * time.Second)},
		"by hand, in a zone":    {reason: "kubectl writes its own zone", restartedAt: "2026-03-02T04:59:30+01:00", want: delayed, until: four.Add(30 * time.Second)},
		"by hand, later":        {reason: "the later one counts", lastRestart: "2026-03-02T03:59:10Z", restartedAt: "2026-03-02T03:59:30Z", want: delayed, until: four.Add(30 * time.Second)},
		"not a time":            {reason: "anybody may have written it", lastRestart: "yesterday", restartedAt: "now", want: started},
		"restartedAt in future": {reason: "it would delay or skip each restart until 2099", restartedAt: "2099-01-01T00:00:00Z", want: started},
		"lastRestart in future": {reason: "it would delay each restart until 2099", lastRestart: "2099-01-01T00:00:00Z", restartedAt: "2026-03-01T04:00:00Z", want: started},
		"both, one in future": {
			reason: "the other one counts", lastRestart: "2026-03-02T03:59:20Z", restartedAt: "2099-01-01T00:00:00Z",
			want: delayed, until: four.Add(10 * time.Second),
		},
		"before a crash": {reason: "this restart is done, and only recorded", lastRestart: "2026-03-02T04:00:00Z", restartedAt: "2026-03-02T04:00:00Z", want: started},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDeployment("web", map[string]string{eruv1.AnnotationLastRestart: tc.lastRestart})
			d.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: tc.restartedAt}
			h := newHarness(t, 0, d, newEru("web", daily))
			h.pass(t, "web")
			eru := h.at(t, four, "web")
			assert.Equal(t, tc.want, state(eru), tc.reason)
			if tc.want == delayed {
				assert.Equal(t, tc.restartedAt, h.restartedAt(t, "web"), tc.reason)
				assert.Equal(t, tc.until.Sub(four), h.after, tc.reason)
				assert.True(t, eru.Status.NextScheduleTime.Time.Equal(tc.until), tc.reason)
				const words = "2026-03-02T04:00:00Z: the Deployment was restarted less than 1m0s before, the operator's --min-interval; the restart waits until that has passed"
				assert.Equal(t, words, eru.LastCondition().Message)
				for late := time.Duration(0); four.Add(late).Before(tc.until); late += 10 * time.Second {
					h.at(t, four.Add(late), "web")
					assert.Zero(t, h.writes, "nothing has changed")
				}
				h.at(t, tc.until, "web")
			}
			assert.Equal(t, "2026-03-02T04:00:00Z", h.restartedAt(t, "web"), "in the end it is restarted")
			h.pass(t, "web")
			h.pass(t, "web")
			assert.Zero(t, h.writes, "in the end nothing is left to write")
		})
	}
}

// TestMinIntervalAndDeadline delays a restart beyond its starting deadline.
func TestMinIntervalAndDeadline(t *testing.T) {
	eru := newEru("web", daily)
	eru.Spec.StartingDeadlineSeconds = new(int64(10))
	h := newHarness(t, 0, newDeployment("web", map[string]string{eruv1.AnnotationLastRestart: "2026-03-02T03:59:30Z"}), eru)
	h.pass(t, "web")
	assert.Equal(t, delayed, state(h.at(t, four, "web")))
	assert.Equal(t, "Running: Restarted false SkippedTooLate", state(h.at(t, four.Add(30*time.Second), "web")))
	assert.Empty(t, h.restartedAt(t, "web"))
}

// TestMinIntervalAndQueue delays an Eru that would be the next one in the queue.
func TestMinIntervalAndQueue(t *testing.T) {
	h := newHarness(t, 1, newDeployment("a", map[string]string{eruv1.AnnotationLastRestart: "2026-03-02T03:59:30Z"}), newEru("a", daily),
		newDeployment("b", nil), newEru("b", daily))
	h.pass(t, "a")
	h.pass(t, "b")
	h.clock.SetTime(four)
	for _, name := range []string{"b", "a", "b"} {
		h.pass(t, name)
	}
	assert.Equal(t, []string{"", "2026-03-02T04:00:00Z"}, h.all(t, []string{"a", "b"}), "a does not keep b waiting")
}

// betweenRounds is the time between two rounds of passes.
const betweenRounds = 10 * time.Second

// TestMinIntervalOfOneDeployment has several Erus restart one Deployment as often as they can. It checks when the pods are replaced.
func TestMinIntervalOfOneDeployment(t *testing.T) {
	const many = 3
	everyMinute := eruv1.EruSpec{DeploymentName: "victim", Enabled: true, Schedule: "@every 1m", ConcurrencyPolicy: eruv1.ReplaceConcurrent}
	everyHour := everyMinute
	everyHour.Schedule = "@every 1h"
	tests := map[string]struct {
		reason string
		spec   func(i int) eruv1.EruSpec
		begin  time.Duration                           // after the Erus were first reconciled
		forge  func(status *eruv1.EruStatus, step int) // before each pass
	}{
		"staggered": {
			reason: "each Eru keeps the interval, all together do not",
			spec:   func(int) eruv1.EruSpec { return everyMinute },
		},
		"late": {
			reason: "the due times are minutes apart, and all of them are due when the operator comes back",
			spec: func(i int) eruv1.EruSpec {
				spec := everyMinute
				spec.Schedule = fmt.Sprintf("%d * * * *", 5*i)
				return spec
			},
			begin: 59 * time.Minute,
		},
		"forged scheduleSince": {
			reason: "the schedule is due in each pass",
			spec:   func(int) eruv1.EruSpec { return everyMinute },
			forge: func(status *eruv1.EruStatus, step int) {
				status.ScheduleSince = new(metav1.NewTime(noon.Add(time.Duration(step)*betweenRounds - time.Minute)))
				status.LastScheduleTime = nil
			},
		},
		"forged due times of the past": {
			reason: "each due time is long ago, and a minute after the one before",
			spec:   func(int) eruv1.EruSpec { return everyHour },
			begin:  time.Hour,
			forge: func(status *eruv1.EruStatus, step int) {
				status.ScheduleSince = new(metav1.NewTime(noon.Add(time.Duration(step+1)*time.Minute - time.Hour)))
				status.LastScheduleTime = nil
			},
		},
		"forged end of the rollout": {
			reason: "the status says that nothing was restarted",
			spec:   func(int) eruv1.EruSpec { return everyMinute },
			forge: func(status *eruv1.EruStatus, _ int) {
				status.LastRestartTime, status.LastRolloutResult, status.NextScheduleTime = nil, "", nil
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 0, newDeployment("victim", nil))
			var names []string
			for i := range many {
				names = append(names, fmt.Sprintf("eru-%d", i))
				require.NoError(t, h.Create(t.Context(), newEru(names[i], tc.spec(i))))
				h.at(t, noon.Add(time.Duration(i)*betweenRounds), names[i])
			}
			var restarts []time.Time
			last := ""
			for step := range 16 {
				now := noon.Add(tc.begin + time.Duration(step)*betweenRounds)
				for _, name := range names {
					if tc.forge != nil {
						h.forge(t, name, func(status *eruv1.EruStatus) { tc.forge(status, step) })
					}
					h.at(t, now, name)
					if at := h.restartedAt(t, "victim"); at != last {
						restarts, last = append(restarts, now), at
					}
				}
			}
			require.NotEmpty(t, restarts, tc.reason)
			for i := range restarts[1:] {
				assert.GreaterOrEqual(t, restarts[i+1].Sub(restarts[i]), 50*time.Second, "%s: %v", tc.reason, restarts)
			}
			assert.GreaterOrEqual(t, len(restarts), 2, "the others are delayed, and not lost: %v", restarts)
		})
	}
}
