package conditions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestSummarize(t *testing.T) {
	type list = []metav1.Condition
	type summary = conditions.Summary
	old := part("Old", "True", "Fine", "")
	old.ObservedGeneration = 1
	foreign := func(conditionType string) metav1.Condition {
		c := part(conditionType, "True", "Fine", "")
		c.ObservedGeneration = 0
		return c
	}

	cases := map[string]struct {
		reason  string
		list    list
		summary summary
		want    metav1.Condition
	}{
		"Nothing": {
			reason: "An object that no controller has looked at is not ready.",
			want:   metav1.Condition{Type: "Ready", Status: "Unknown", Reason: "NoConditions", Message: "no conditions reported yet"},
		},
		"OnlyItself": {
			reason: "The summary is not part of itself; otherwise it would never change.",
			list:   list{part("Ready", "True", "Fine", "")},
			want:   metav1.Condition{Type: "Ready", Status: "Unknown", Reason: "NoConditions", Message: "no conditions reported yet"},
		},
		"AllGood": {
			reason: "The positive conditions are True, and those that kstatus defines as negative are False.",
			list: list{
				part("Database", "True", "Fine", "up"), part("Reconciling", "False", "Done", ""), part("Stalled", "False", "Done", ""),
			},
			want: part("Ready", "True", "Succeeded", ""),
		},
		"TrueAndUnknown": {
			reason: "A summary is never True while a condition is Unknown.",
			list:   list{part("A", "True", "Fine", ""), part("B", "Unknown", "Lost", "no answer")},
			want:   part("Ready", "Unknown", "Lost", "no answer"),
		},
		"FalseBeatsUnknown": {
			reason: "The False condition decides reason and message, at any position.",
			list:   list{part("A", "Unknown", "Lost", "no answer"), part("B", "False", "Broken", "disk full")},
			want:   part("Ready", "False", "Broken", "disk full"),
		},
		"SeveralFalse": {
			reason: "The reason is that of the first, and the message lists all in order.",
			list: list{
				part("B", "False", "Broken", "disk full"), part("U", "Unknown", "Lost", "no answer"), part("A", "False", "Denied", ""),
			},
			want: part("Ready", "False", "Broken", "B: disk full; A: Denied"),
		},
		"NegativeTrue": {
			reason: "Stalled is negative without an option.",
			list:   list{part("A", "True", "Fine", ""), part("Stalled", "True", "BadSpec", "size is negative")},
			want:   part("Ready", "False", "BadSpec", "size is negative"),
		},
		"NegativeUnknown": {
			reason:  "Unknown is not good for a negative condition either.",
			list:    list{part("A", "True", "Fine", ""), part("Degraded", "Unknown", "Lost", "no answer")},
			summary: summary{Negative: []string{"Degraded"}},
			want:    part("Ready", "Unknown", "Lost", "no answer"),
		},
		"OwnNegative": {
			reason:  "A negative condition that is False is good.",
			list:    list{part("A", "True", "Fine", ""), part("Degraded", "False", "Fine", "")},
			summary: summary{Negative: []string{"Degraded"}},
			want:    part("Ready", "True", "Succeeded", ""),
		},
		"NegativeAbsent": {
			reason:  "A negative condition that is absent is good.",
			list:    list{part("A", "True", "Fine", "")},
			summary: summary{Negative: []string{"Degraded"}},
			want:    part("Ready", "True", "Succeeded", ""),
		},
		"OnlyAbsentNegatives": {
			reason:  "Absence alone is not success: perhaps no controller has looked at the object.",
			summary: summary{Types: []string{"Degraded"}, Negative: []string{"Degraded"}},
			want:    metav1.Condition{Type: "Ready", Status: "Unknown", Reason: "NoConditions", Message: "no conditions reported yet"},
		},
		"TypesLimits": {
			reason:  "Types that are not named do not count, not even Stalled.",
			list:    list{part("X", "False", "Broken", ""), part("Stalled", "True", "Bad", ""), part("A", "True", "Fine", "")},
			summary: summary{Types: []string{"A"}},
			want:    part("Ready", "True", "Succeeded", ""),
		},
		"TypesOrders": {
			reason:  "The order of the arguments counts, not that of the list, and each type counts once.",
			list:    list{part("A", "False", "First", "a"), part("B", "False", "Second", "b")},
			summary: summary{Types: []string{"B", "A", "B"}},
			want:    part("Ready", "False", "Second", "B: b; A: a"),
		},
		"TypesAbsent": {
			reason:  "A type that is named and absent is Unknown.",
			list:    list{part("A", "True", "Fine", "")},
			summary: summary{Types: []string{"A", "B"}},
			want:    part("Ready", "Unknown", "Missing", "no B condition yet"),
		},
		"TypesAndNegative": {
			reason:  "A negative type counts too, after those in Types.",
			list:    list{part("Degraded", "True", "Slow", "9 s"), part("A", "False", "Broken", "disk full")},
			summary: summary{Types: []string{"A"}, Negative: []string{"Degraded"}},
			want:    part("Ready", "False", "Broken", "A: disk full; Degraded: 9 s"),
		},
		"TypesNamesItself": {
			reason:  "Naming the summary's own type has no effect.",
			list:    list{part("A", "True", "Fine", ""), part("Ready", "False", "Old", "")},
			summary: summary{Types: []string{"Ready", "A"}},
			want:    part("Ready", "True", "Succeeded", ""),
		},
		"Type": {
			reason:  "With another target type, Ready is summed up as any other condition.",
			list:    list{part("Ready", "False", "Broken", "disk full"), part("Healthy", "True", "Old", "")},
			summary: summary{Type: "Healthy"},
			want:    part("Healthy", "False", "Broken", "disk full"),
		},
		"Success": {
			reason:  "An API may define its own reason and message for success.",
			list:    list{part("A", "True", "Fine", "")},
			summary: summary{Reason: "ProvisionSucceeded", Message: "The user is there."},
			want:    part("Ready", "True", "ProvisionSucceeded", "The user is there."),
		},
		"LowestGeneration": {
			reason: "The summary is only as recent as the oldest condition.",
			list:   list{part("A", "True", "Fine", ""), old},
			want:   metav1.Condition{Type: "Ready", Status: "True", Reason: "Succeeded", ObservedGeneration: 1},
		},
		"NoGeneration": {
			reason: "Conditions without an observed generation do not count.",
			list:   list{foreign("Before"), part("A", "True", "Fine", ""), foreign("After")},
			want:   part("Ready", "True", "Succeeded", ""),
		},
		"NoReason": {
			reason: "Another condition struct may have no reason; the summary needs one.",
			list:   list{part("A", "False", "", "disk full")},
			want:   part("Ready", "False", "Failed", "disk full"),
		},
		"NoStatus": {
			reason: "An invalid status counts as Unknown.",
			list:   list{part("A", "", "", "")},
			want:   part("Ready", "Unknown", "Unknown", ""),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := conditions.Summarize(tc.list, tc.summary)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSummarize(...): -want, +got:\n%s", tc.reason, diff)
			}
			stored := append(list(nil), tc.list...)
			if _, _, err := conditions.Set(&stored, got); err != nil {
				t.Errorf("\n%s\nthe summary cannot be stored: %v", tc.reason, err)
			}
			if diff := cmp.Diff(got, conditions.Summarize(stored, tc.summary)); diff != "" {
				t.Errorf("\n%s\na stored summary changes the next one: -first, +second:\n%s", tc.reason, diff)
			}
		})
	}
}
