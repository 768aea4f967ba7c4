package conditions_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestSet(t *testing.T) {
	type want struct {
		List    []metav1.Condition
		Stored  metav1.Condition
		Changed bool
	}
	cases := map[string]struct {
		reason string
		list   []metav1.Condition
		set    metav1.Condition
		want   want
	}{
		"Created": {
			reason: "A new condition is added at the end, with the time that was passed.",
			list:   []metav1.Condition{other("Zebra"), other("Apple")},
			set:    ready("False", "Starting", "wait", 1, noon),
			want: want{
				List:    []metav1.Condition{other("Zebra"), other("Apple"), ready("False", "Starting", "wait", 1, noon)},
				Stored:  ready("False", "Starting", "wait", 1, noon),
				Changed: true,
			},
		},
		"Same": {
			reason: "Setting a condition that is already stored changes nothing, also at a later time.",
			list:   []metav1.Condition{ready("True", "Done", "ok", 1, noon)},
			set:    ready("True", "Done", "ok", 1, one),
			want: want{
				List:   []metav1.Condition{ready("True", "Done", "ok", 1, noon)},
				Stored: ready("True", "Done", "ok", 1, noon),
			},
		},
		"Status": {
			reason: "A new status is a transition, and the condition keeps its place.",
			list:   []metav1.Condition{ready("False", "Starting", "", 1, noon), other("Last")},
			set:    ready("True", "Done", "", 1, one),
			want: want{
				List:    []metav1.Condition{ready("True", "Done", "", 1, one), other("Last")},
				Stored:  ready("True", "Done", "", 1, one),
				Changed: true,
			},
		},
		"StatusUnknown": {
			reason: "From True to Unknown is a transition too.",
			list:   []metav1.Condition{ready("True", "Done", "", 1, noon)},
			set:    ready("Unknown", "Done", "", 1, one),
			want: want{
				List:    []metav1.Condition{ready("Unknown", "Done", "", 1, one)},
				Stored:  ready("Unknown", "Done", "", 1, one),
				Changed: true,
			},
		},
		"Message": {
			reason: "A new message is written, but is no transition.",
			list:   []metav1.Condition{ready("False", "Starting", "1 of 2", 1, noon)},
			set:    ready("False", "Starting", "2 of 2", 1, one),
			want: want{
				List:    []metav1.Condition{ready("False", "Starting", "2 of 2", 1, noon)},
				Stored:  ready("False", "Starting", "2 of 2", 1, noon),
				Changed: true,
			},
		},
		"Reason": {
			reason: "A new reason is written, but is no transition.",
			list:   []metav1.Condition{ready("False", "Starting", "", 1, noon)},
			set:    ready("False", "Stopping", "", 1, one),
			want: want{
				List:    []metav1.Condition{ready("False", "Stopping", "", 1, noon)},
				Stored:  ready("False", "Stopping", "", 1, noon),
				Changed: true,
			},
		},
		"ObservedGeneration": {
			reason: "A newer generation is written, but is no transition.",
			list:   []metav1.Condition{ready("True", "Done", "", 1, noon)},
			set:    ready("True", "Done", "", 2, one),
			want: want{
				List:    []metav1.Condition{ready("True", "Done", "", 2, noon)},
				Stored:  ready("True", "Done", "", 2, noon),
				Changed: true,
			},
		},
		"WholeSeconds": {
			reason: "The API stores whole seconds, so the fraction is dropped.",
			set:    ready("True", "Done", "", 1, metav1.NewTime(noon.Add(999*time.Millisecond))),
			want: want{
				List:    []metav1.Condition{ready("True", "Done", "", 1, noon)},
				Stored:  ready("True", "Done", "", 1, noon),
				Changed: true,
			},
		},
		"StoredWithoutTime": {
			reason: "A stored condition without a time gets one; otherwise the API server would refuse every update.",
			list:   []metav1.Condition{ready("True", "Done", "", 1, metav1.Time{})},
			set:    ready("True", "Done", "", 1, noon),
			want: want{
				List:    []metav1.Condition{ready("True", "Done", "", 1, noon)},
				Stored:  ready("True", "Done", "", 1, noon),
				Changed: true,
			},
		},
		"Duplicate": {
			reason: "If two conditions have the type, the first is changed and the second is kept.",
			list:   []metav1.Condition{ready("True", "Done", "", 1, noon), ready("False", "Old", "", 1, noon)},
			set:    ready("True", "Done", "new", 1, one),
			want: want{
				List:    []metav1.Condition{ready("True", "Done", "new", 1, noon), ready("False", "Old", "", 1, noon)},
				Stored:  ready("True", "Done", "new", 1, noon),
				Changed: true,
			},
		},
		"NotUTF8": {
			reason: "The JSON encoder would replace the byte, and the next reconcile would see a difference.",
			list:   []metav1.Condition{ready("True", "Done", "a\uFFFDb", 1, noon)},
			set:    ready("True", "Done", "a\xffb", 1, noon),
			want: want{
				List:   []metav1.Condition{ready("True", "Done", "a\uFFFDb", 1, noon)},
				Stored: ready("True", "Done", "a\uFFFDb", 1, noon),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cached := append(make([]metav1.Condition, 0, 8), tc.list...)
			before := append([]metav1.Condition(nil), cached[:cap(cached)]...)
			list := cached

			var got want
			var err error
			got.Stored, got.Changed, err = conditions.Set(&list, tc.set)
			if err != nil {
				t.Fatalf("\n%s\nSet(...): %v", tc.reason, err)
			}
			got.List = list
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSet(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, cached[:cap(cached)]); diff != "" {
				t.Errorf("\n%s\nSet(...) wrote into an array that may belong to a cache: -before, +after:\n%s", tc.reason, diff)
			}
			if _, again, err := conditions.Set(&list, tc.set); again || err != nil {
				t.Errorf("\n%s\nSet(...) a second time: changed %v, error %v", tc.reason, again, err)
			}
		})
	}
}

func TestSetInvalid(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    metav1.Condition
		want   []string
	}{
		"NoType": {
			reason: "A condition is found by its type.",
			set:    metav1.Condition{Status: "True", Reason: "Done"},
			want:   []string{`invalid condition ""`, "type", "such as Ready"},
		},
		"TypeWithSpace": {
			reason: "The schema refuses it.",
			set:    metav1.Condition{Type: "Not Ready", Status: "True", Reason: "Done"},
			want:   []string{`invalid condition "Not Ready"`, "type"},
		},
		"TypeTooLong": {
			reason: "Prefix and name are each allowed, but together one character too long.",
			set: metav1.Condition{
				Type: strings.Repeat("a.", 126) + "a/" + strings.Repeat("B", 63), Status: "True", Reason: "Done",
			},
			want: []string{"type", "316"},
		},
		"NoStatus": {
			reason: "An empty status does not mean Unknown.",
			set:    metav1.Condition{Type: "Ready", Reason: "Done"},
			want:   []string{"status", "True, False or Unknown"},
		},
		"StatusInLowerCase": {
			reason: "The schema has an enumeration.",
			set:    metav1.Condition{Type: "Ready", Status: "true", Reason: "Done"},
			want:   []string{"status", `"true"`, "True, False or Unknown"},
		},
		"NoReason": {
			reason: "The schema requires at least one character.",
			set:    metav1.Condition{Type: "Ready", Status: "True"},
			want:   []string{"reason", "such as Succeeded"},
		},
		"ReasonWithSpaces": {
			reason: "A sentence belongs in the message.",
			set:    metav1.Condition{Type: "Ready", Status: "False", Reason: "database is down"},
			want:   []string{"reason", "database is down", "alphanumeric"},
		},
		"ReasonTooLong": {
			reason: "1024 is the schema's limit.",
			set:    metav1.Condition{Type: "Ready", Status: "False", Reason: strings.Repeat("A", 1025)},
			want:   []string{"reason", "1024"},
		},
		"NegativeGeneration": {
			reason: "The schema's minimum is 0.",
			set:    metav1.Condition{Type: "Ready", Status: "False", Reason: "Done", ObservedGeneration: -1},
			want:   []string{"observedGeneration"},
		},
		"Several": {
			reason: "All faults are named at once.",
			set:    metav1.Condition{Type: "not ready", Status: "False"},
			want:   []string{"type", "reason"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list := []metav1.Condition{ready("True", "Done", "", 1, noon)}
			stored, changed, err := conditions.Set(&list, tc.set)
			if !errors.Is(err, conditions.ErrInvalid) || changed {
				t.Fatalf("\n%s\nSet(...): want ErrInvalid and no change, got changed %v, error %v", tc.reason, changed, err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("\n%s\nSet(...): the error lacks %q: %v", tc.reason, part, err)
				}
			}
			if diff := cmp.Diff([]metav1.Condition{ready("True", "Done", "", 1, noon)}, list); diff != "" {
				t.Errorf("\n%s\nSet(...) changed the list: -want, +got:\n%s", tc.reason, diff)
			}
			was, _ := conditions.Get(list, tc.set.Type)
			if diff := cmp.Diff(was, stored); diff != "" {
				t.Errorf("\n%s\nSet(...): stored is not what it was: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetNilList(t *testing.T) {
	_, _, err := conditions.Set(nil, other("Ready"))
	if !errors.Is(err, conditions.ErrInvalid) || !strings.Contains(err.Error(), "&obj.Status.Conditions") {
		t.Errorf("Set(nil, ...): want ErrInvalid that says what to pass, got %v", err)
	}
}

// A caller that gets a condition, edits its status and sets it again passes the old transition time unintentionally.
func TestSetConditionFromGet(t *testing.T) {
	editor := conditions.Standard().WithClock(func() time.Time { return one.Time })
	list := []metav1.Condition{ready("True", "Done", "", 1, noon)}
	c, _ := editor.Get(list, "Ready")
	c.Status = metav1.ConditionFalse
	stored, _, err := editor.Set(&list, c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, stored.LastTransitionTime); diff != "" {
		t.Errorf("the transition has the time of the previous one: -want, +got:\n%s", diff)
	}
}

func TestSetDefaultTime(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	var list []metav1.Condition
	stored, _, err := conditions.Set(&list, ready("True", "Done", "", 1, metav1.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	if at := stored.LastTransitionTime.Time; at.Before(before) || at.After(time.Now()) {
		t.Errorf("want the time between %v and now, got %v", before, at)
	}
}

// reflect.DeepEqual also compares time zones and monotonic clock readings, which cmp.Diff and the API ignore.
func TestSetRoundTrip(t *testing.T) {
	for name, at := range map[string]metav1.Time{"Now": {}, "Given": one, "GivenWithNanoseconds": metav1.NewTime(one.Add(123))} {
		t.Run(name, func(t *testing.T) {
			var list, back []metav1.Condition
			if _, _, err := conditions.Set(&list, ready("True", "Done", "ok", 3, at)); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(list, back) {
				t.Errorf("set %#v, read back %#v", list, back)
			}
		})
	}
}

func TestNoChangeAllocatesNothing(t *testing.T) {
	list := []metav1.Condition{other("First"), ready("True", "Done", "ok", 1, noon)}
	same := ready("True", "Done", "ok", 1, one)
	allocations := testing.AllocsPerRun(100, func() {
		if _, changed, err := conditions.Set(&list, same); changed || err != nil {
			t.Fatal("changed")
		}
		if !conditions.IsTrue(list, "Ready") || conditions.Remove(&list, "Absent") {
			t.Fatal("wrong answer")
		}
		if _, ok := conditions.Get(list, "Ready"); !ok {
			t.Fatal("not found")
		}
	})
	if allocations != 0 {
		t.Errorf("want no allocation, got %v", allocations)
	}
}

func TestGetAndIsTrue(t *testing.T) {
	type want struct {
		Condition metav1.Condition
		Found     bool
		True      bool
	}
	cases := map[string]struct {
		reason string
		list   []metav1.Condition
		want   want
	}{
		"Nil": {
			reason: "A status that was never written has no conditions.",
		},
		"Absent": {
			reason: "Types are compared exactly, including case and prefix.",
			list:   []metav1.Condition{other("ready"), other("example.com/Ready")},
		},
		"True": {
			reason: "The condition is found at any position.",
			list:   []metav1.Condition{other("First"), ready("True", "Done", "", 1, noon)},
			want:   want{Condition: ready("True", "Done", "", 1, noon), Found: true, True: true},
		},
		"Unknown": {
			reason: "Unknown is not true.",
			list:   []metav1.Condition{ready("Unknown", "Lost", "", 1, noon)},
			want:   want{Condition: ready("Unknown", "Lost", "", 1, noon), Found: true},
		},
		"Duplicate": {
			reason: "The first one is returned.",
			list:   []metav1.Condition{ready("False", "Broken", "", 1, noon), ready("True", "Done", "", 1, noon)},
			want:   want{Condition: ready("False", "Broken", "", 1, noon), Found: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			got.Condition, got.Found = conditions.Get(tc.list, "Ready")
			got.True = conditions.IsTrue(tc.list, "Ready")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	type want struct {
		List    []metav1.Condition
		Changed bool
	}
	cases := map[string]struct {
		reason string
		list   []metav1.Condition
		want   want
	}{
		"Nil": {
			reason: "A nil list stays nil: an empty list instead would be a difference that has to be written.",
		},
		"Absent": {
			reason: "Removing an absent condition is not a change.",
			list:   []metav1.Condition{other("B"), other("A")},
			want:   want{List: []metav1.Condition{other("B"), other("A")}},
		},
		"Middle": {
			reason: "The others keep their order.",
			list:   []metav1.Condition{other("B"), other("Ready"), other("A")},
			want:   want{List: []metav1.Condition{other("B"), other("A")}, Changed: true},
		},
		"Last": {
			reason: "The list becomes empty, not nil: null would be refused where the schema requires the list.",
			list:   []metav1.Condition{other("Ready")},
			want:   want{List: []metav1.Condition{}, Changed: true},
		},
		"Duplicates": {
			reason: "All are removed: one that is left would become the first of its type.",
			list:   []metav1.Condition{other("Ready"), other("A"), other("Ready")},
			want:   want{List: []metav1.Condition{other("A")}, Changed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cached := append([]metav1.Condition(nil), tc.list...)
			list := cached
			var got want
			got.Changed = conditions.Remove(&list, "Ready")
			got.List = list
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRemove(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(append([]metav1.Condition(nil), tc.list...), cached); diff != "" {
				t.Errorf("\n%s\nRemove(...) wrote into an array that may belong to a cache: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemoveNilList(t *testing.T) {
	if conditions.Remove(nil, "Ready") {
		t.Error("Remove(nil, ...) reports a change")
	}
}
