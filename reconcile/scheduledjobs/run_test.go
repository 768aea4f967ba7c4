package scheduledjobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opblocks/opblocks/internal/record"
)

func TestJobName(t *testing.T) {
	two := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		reason        string
		owner, suffix string
		at            time.Time
		want          string
	}{
		"Minutes": {"as CronJob names them", "web", "", two, "web-29538840"},
		"Suffix":  {"one of several schedules", "web", "full", two, "web-full-29538840"},
		"Seconds": {"an interval may be shorter than a minute", "web", "", two.Add(30 * time.Second), "web-29538840-30"},
		"Zone":    {"the same moment has the same name in every zone", "web", "", two.In(time.FixedZone("", 3600)), "web-29538840"},
		"Longest": {"54 characters and the time fit", strings.Repeat("a", 54), "", two, strings.Repeat("a", 54) + "-29538840"},
		"TooLong": {"it is cut, and ends in a hash of the whole", strings.Repeat("a", 55), "", two, strings.Repeat("a", 43) + "-9f4390f8d3-29538840"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, jobName(tc.owner, tc.suffix, tc.at), tc.reason) })
	}
	t.Run("Valid", func(t *testing.T) {
		for n := range 200 { // some names are cut right after a dot or a hyphen
			for _, owner := range []string{strings.Repeat("a", n+1), strings.Repeat("a.", n) + "a", strings.Repeat("b", n) + ".-." + strings.Repeat("c", 60)} {
				if len(validation.IsDNS1123Subdomain(owner)) > 0 {
					continue
				}
				got := jobName(owner, "full", two.Add(time.Second))
				require.Empty(t, validation.IsDNS1123Subdomain(got), "%s: %s", owner, got)
				require.Empty(t, validation.IsValidLabelValue(got), "%s: %s", owner, got)
			}
		}
	})
	t.Run("Different", func(t *testing.T) {
		seen := map[string]string{}
		for n := range 100 {
			owner := strings.Repeat("a", n+1)
			for _, at := range []time.Time{two, two.Add(time.Minute), two.Add(time.Second)} {
				name, is := jobName(owner, "", at), fmt.Sprint(owner, at)
				require.Empty(t, seen[name], "%s and %s", is, seen[name])
				seen[name] = is
			}
		}
	})
}

func TestRunOf(t *testing.T) {
	two := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	job := func(edit func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: "web-29538840", Annotations: map[string]string{record.Scheduled: "2026-03-01T02:00:00Z"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Backup", Name: "web", Controller: new(true)}},
		}}
		edit(j)
		return j
	}
	tests := map[string]struct {
		reason string
		edit   func(*batchv1.Job)
		want   bool
	}{
		"Ours":         {"it is as the step creates it", func(*batchv1.Job) {}, true},
		"Copy":         {"somebody copied it under another name", func(j *batchv1.Job) { j.Name = "web-again" }, false},
		"OtherTime":    {"its name is not that of its time", func(j *batchv1.Job) { j.Annotations[record.Scheduled] = "2026-03-01T03:00:00Z" }, false},
		"NoTime":       {"somebody else created it for the owner", func(j *batchv1.Job) { j.Annotations = nil }, false},
		"InvalidTime":  {"the annotation was edited", func(j *batchv1.Job) { j.Annotations[record.Scheduled] = "two" }, false},
		"NoController": {"it was orphaned", func(j *batchv1.Job) { j.OwnerReferences = nil }, false},
		"OtherSuffix":  {"it belongs to another schedule of the owner", func(j *batchv1.Job) { j.Name = "web-full-29538840" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, ok := runOf(job(tc.edit), "")
			require.Equal(t, tc.want, ok, tc.reason)
			if ok {
				require.True(t, two.Equal(r.scheduled))
			}
		})
	}
}
