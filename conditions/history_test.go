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

// event is a condition struct without a status, as an API that keeps a history may have it.
type event struct {
	Ready  bool
	Reason string
	At     metav1.Time
}

type events struct{}

func (events) Read(e event) metav1.Condition {
	status := metav1.ConditionFalse
	if e.Ready {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Status: status, Reason: e.Reason, LastTransitionTime: e.At}
}

func (events) Write(e event, to metav1.Condition, at metav1.Time) event {
	return event{Ready: to.Status == metav1.ConditionTrue, Reason: to.Reason, At: at}
}

func (events) Validate(metav1.Condition) error { return nil }

func TestAppend(t *testing.T) {
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
			reason: "a history begins",
			add:    metav1.Condition{Type: "Any", Status: "True", Reason: "Created"}, limit: 2,
			want: []event{{true, "Created", later}},
		},
		"SameAgain": {
			reason: "saying it again is no event, whenever it is said",
			list:   []event{first}, add: metav1.Condition{Type: "Any", Status: "True", Reason: "Created"}, limit: 2,
			want: []event{first},
		},
		"SameAsAnEarlierOne": {
			reason: "only the last one counts: things do happen again",
			list:   []event{first, second}, add: metav1.Condition{Type: "Any", Status: "True", Reason: "Created"}, limit: 3,
			want: []event{first, second, {true, "Created", later}},
		},
		"Full": {
			reason: "the oldest goes",
			list:   []event{first, second}, add: metav1.Condition{Type: "Any", Status: "False", Reason: "Failed"}, limit: 2,
			want: []event{second, {false, "Failed", later}},
		},
		"LimitLowered": {
			reason: "what is too much goes with the next entry",
			list:   []event{first, second, first}, add: metav1.Condition{Type: "Any", Status: "False", Reason: "Failed"}, limit: 1,
			want: []event{{false, "Failed", later}},
		},
		"OwnTime": {
			reason: "what happened earlier says when",
			add:    metav1.Condition{Type: "Any", Status: "True", Reason: "Created", LastTransitionTime: noon}, limit: 1,
			want: []event{first},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := append([]event(nil), tc.list...)
			list := tc.list
			changed, err := history.Append(&list, tc.add, tc.limit)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, list); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.Equal(t, cmp.Diff(before, list) != "", changed)
			require.Empty(t, cmp.Diff(before, tc.list), "the array may be a cache's")
		})
	}
}

func TestAppendIsRefused(t *testing.T) {
	list := []metav1.Condition{ready("True", "Done", "", 0, noon)}
	for says, append := range map[string]func() (bool, error){
		"no list to append": func() (bool, error) { return conditions.Append(nil, list[0], 1) },
		"keep at least 1":   func() (bool, error) { return conditions.Append(&list, list[0], 0) },
		"reason":            func() (bool, error) { return conditions.Append(&list, ready("True", "not good", "", 0, noon), 1) },
	} {
		changed, err := append()
		require.ErrorIs(t, err, conditions.ErrInvalid)
		require.ErrorContains(t, err, says)
		require.False(t, changed)
	}
	changed, err := conditions.Append(&list, ready("True", "Done", strings.Repeat("é", 40_000), 0, noon), 5)
	require.NoError(t, err)
	require.True(t, changed)
	require.LessOrEqual(t, len(list[1].Message), 32768, "an over-long message is cut as by Set")
}

func TestHistory(t *testing.T) {
	var stored []metav1.Condition
	list := conditions.History(&stored, 3)
	_, found := list.Get("Ready")
	require.False(t, found)
	set := func(conditionType string, status metav1.ConditionStatus) bool {
		t.Helper()
		got, changed, err := list.Set(metav1.Condition{Type: conditionType, Status: status, Reason: "Because"})
		require.NoError(t, err)
		require.Equal(t, status, got.Status, "what is stored is the newest of its type")
		return changed
	}
	require.True(t, set("Ready", metav1.ConditionFalse))
	require.False(t, set("Ready", metav1.ConditionFalse), "it is what was said last")
	require.True(t, set("Ready", metav1.ConditionTrue))
	require.True(t, set("Stopped", metav1.ConditionTrue))
	require.True(t, set("Ready", metav1.ConditionFalse), "something else was said in between")
	require.False(t, list.Remove("Ready"), "what was so stays told")

	var told []string
	for _, c := range list.All() {
		told = append(told, c.Type+" "+string(c.Status))
	}
	require.Equal(t, []string{"Ready True", "Stopped True", "Ready False"}, told, "oldest first, and no more than the limit")
	newest, _ := list.Get("Ready")
	require.Equal(t, metav1.ConditionFalse, newest.Status)

	_, changed, err := conditions.History(&stored, 0).Set(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Because"})
	require.ErrorIs(t, err, conditions.ErrInvalid)
	require.False(t, changed)
}
