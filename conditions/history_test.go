package conditions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestHistorySet(t *testing.T) {
	later := metav1.NewTime(noon.Add(time.Hour))
	history := conditions.NewEditor[event](events{}).WithClock(func() time.Time { return later.Time })
	first, second := event{Ready: true, Reason: "Created", At: noon}, event{Ready: true, Reason: "Scheduled", At: noon}
	cases := map[string]struct {
		reason string
		list   []event
		add    metav1.Condition
		limit  int
		want   []event
	}{
		"First": {
			reason: "An empty history gets its first entry.",
			add:    metav1.Condition{Type: "Any", Status: "True", Reason: "Created"}, limit: 2,
			want: []event{{true, "Created", later}},
		},
		"Repeated": {
			reason: "The same entry again, at a later time, is not added.",
			list:   []event{first}, add: metav1.Condition{Type: "Any", Status: "True", Reason: "Created"}, limit: 2,
			want: []event{first},
		},
		"SameAsEarlier": {
			reason: "Only the last entry is compared, because the same thing may happen again.",
			list:   []event{first, second}, add: metav1.Condition{Type: "Any", Status: "True", Reason: "Created"}, limit: 3,
			want: []event{first, second, {true, "Created", later}},
		},
		"Full": {
			reason: "The oldest entry is dropped.",
			list:   []event{first, second}, add: metav1.Condition{Type: "Any", Status: "False", Reason: "Failed"}, limit: 2,
			want: []event{second, {false, "Failed", later}},
		},
		"LimitLowered": {
			reason: "A list over a lowered limit is shortened when the next entry is added.",
			list:   []event{first, second, first}, add: metav1.Condition{Type: "Any", Status: "False", Reason: "Failed"}, limit: 1,
			want: []event{{false, "Failed", later}},
		},
		"OwnTime": {
			reason: "A time that is passed is kept.",
			add:    metav1.Condition{Type: "Any", Status: "True", Reason: "Created", LastTransitionTime: noon}, limit: 1,
			want: []event{first},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := append([]event(nil), tc.list...)
			list := tc.list
			_, changed, err := history.History(&list, tc.limit).Set(tc.add)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, list); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.Equal(t, cmp.Diff(before, list) != "", changed)
			require.Empty(t, cmp.Diff(before, tc.list), "the old array may belong to a cache")
		})
	}
}

func TestHistorySetInvalid(t *testing.T) {
	list := []metav1.Condition{ready("True", "Done", "", 0, noon)}
	cases := map[string]struct {
		reason string
		list   *[]metav1.Condition
		add    metav1.Condition
		limit  int
		want   string
	}{
		"NilList": {"There is no list to append to.", nil, list[0], 1, "the pointer to the list is nil"},
		"NoLimit": {"A history without entries could not hold the new one.", &list, list[0], 0, "keep at least 1"},
		"Reason":  {"The API server would refuse it.", &list, ready("True", "not good", "", 0, noon), 1, "reason"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, changed, err := conditions.History(tc.list, tc.limit).Set(tc.add)
			require.ErrorIs(t, err, conditions.ErrInvalid, tc.reason)
			require.ErrorContains(t, err, tc.want, tc.reason)
			require.False(t, changed)
			require.Len(t, list, 1)
		})
	}
}

func TestHistorySetMessage(t *testing.T) {
	list := []metav1.Condition{ready("True", "Done", "", 0, noon)}
	_, changed, err := conditions.History(&list, 5).Set(ready("True", "Done", strings.Repeat("é", 40_000), 0, noon))
	require.NoError(t, err)
	require.True(t, changed)
	require.LessOrEqual(t, len(list[1].Message), 32768, "a message that is too long is cut, as Set does")
}

func TestHistory(t *testing.T) {
	var stored []metav1.Condition
	list := conditions.History(&stored, 3)
	_, found := list.Get("Ready")
	require.False(t, found)
	set := func(conditionType string, status metav1.ConditionStatus) bool {
		t.Helper()
		got, changed, err := list.Set(metav1.Condition{Type: conditionType, Status: status, Reason: "Test"})
		require.NoError(t, err)
		require.Equal(t, status, got.Status, "Set returns the newest entry of the type")
		return changed
	}
	require.True(t, set("Ready", metav1.ConditionFalse))
	require.False(t, set("Ready", metav1.ConditionFalse), "it repeats the last entry")
	require.True(t, set("Ready", metav1.ConditionTrue))
	require.True(t, set("Stopped", metav1.ConditionTrue))
	require.True(t, set("Ready", metav1.ConditionFalse), "another entry came in between")
	require.False(t, list.Remove("Ready"), "a history is not rewritten")

	var got []string
	for _, c := range list.All() {
		got = append(got, c.Type+" "+string(c.Status))
	}
	require.Equal(t, []string{"Ready True", "Stopped True", "Ready False"}, got, "oldest first, and no more than the limit")
	newest, _ := list.Get("Ready")
	require.Equal(t, metav1.ConditionFalse, newest.Status)

	_, changed, err := conditions.History(&stored, 0).Set(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Test"})
	require.ErrorIs(t, err, conditions.ErrInvalid)
	require.False(t, changed)
}
