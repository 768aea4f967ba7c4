package conditions_test

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func ExampleSet() {
	var status struct{ Conditions []metav1.Condition }
	for _, message := range []string{"1 of 3 pods ready", "1 of 3 pods ready", "2 of 3 pods ready"} {
		_, changed, err := conditions.Set(&status.Conditions, metav1.Condition{
			Type: "Available", Status: metav1.ConditionFalse, Reason: "PodsNotReady", Message: message, ObservedGeneration: 1,
		})
		fmt.Println(changed, err)
	}
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleSet_invalid() {
	var list []metav1.Condition
	_, _, err := conditions.Set(&list, metav1.Condition{Type: "Available", Status: metav1.ConditionFalse})
	fmt.Println(errors.Is(err, conditions.ErrInvalid), len(list))
	fmt.Println(err)
	// Output:
	// true 0
	// invalid condition "Available": reason: Required value: use a CamelCase word, such as Succeeded
}

func ExampleGet() {
	list := []metav1.Condition{{Type: "Available", Status: metav1.ConditionFalse, Reason: "PodsNotReady"}}
	c, ok := conditions.Get(list, "Available")
	fmt.Println(c.Reason, ok)
	_, ok = conditions.Get(list, "Degraded")
	fmt.Println(ok)
	// Output:
	// PodsNotReady true
	// false
}

func ExampleIsTrue() {
	list := []metav1.Condition{{Type: "Available", Status: metav1.ConditionUnknown, Reason: "NotSeenYet"}}
	fmt.Println(conditions.IsTrue(list, "Available"))
	// Output: false
}

func ExampleRemove() {
	list := []metav1.Condition{{Type: "NotReady", Status: metav1.ConditionTrue, Reason: "Outdated"}}
	fmt.Println(conditions.Remove(&list, "NotReady"), conditions.Remove(&list, "NotReady"), len(list))
	// Output: true false 0
}

func ExampleSummarize() {
	list := []metav1.Condition{
		{Type: "Database", Status: metav1.ConditionTrue, Reason: "Connected", ObservedGeneration: 3},
		{Type: "Cache", Status: metav1.ConditionFalse, Reason: "PodsNotReady", Message: "2 of 3 pods ready", ObservedGeneration: 3},
		{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "SlowDisk", Message: "disk is slow", ObservedGeneration: 3},
	}
	ready := conditions.Summarize(list, conditions.Summary{Negative: []string{"Degraded"}})
	fmt.Println(ready.Type, ready.Status, ready.Reason, ready.ObservedGeneration)
	fmt.Println(ready.Message)
	// Output:
	// Ready False PodsNotReady 3
	// Cache: 2 of 3 pods ready; Degraded: disk is slow
}

func ExampleSummary_types() {
	list := []metav1.Condition{{Type: "Database", Status: metav1.ConditionTrue, Reason: "Connected"}}
	ready := conditions.Summarize(list, conditions.Summary{Types: []string{"Database", "Cache"}})
	fmt.Println(ready.Status, ready.Reason, ready.Message)
	// Output: Unknown Missing no Cache condition yet
}

func ExampleSummary_success() {
	list := []metav1.Condition{{Type: "User", Status: metav1.ConditionTrue, Reason: "Created"}}
	ready := conditions.Summarize(list, conditions.Summary{Reason: "ProvisionSucceeded", Message: "The user is there."})
	fmt.Println(ready.Reason, ready.Message)
	// Output: ProvisionSucceeded The user is there.
}

func ExampleStandard() {
	var status struct{ Conditions []metav1.Condition }
	var binder conditions.Binder = conditions.Standard()
	list, err := binder.Bind(&status.Conditions) // such a pointer may come from reflection
	if err != nil {
		panic(err)
	}
	_, _, _ = list.Set(metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "PodsReady"})
	fmt.Println(len(status.Conditions), conditions.Summarize(list.All(), conditions.Summary{}).Status)
	// Output: 1 True
}

// health is the condition struct of an API that has no reasons.
type health struct {
	Check  string
	Status metav1.ConditionStatus
	Text   string
	Since  metav1.Time
}

type healthAdapter struct{}

func (healthAdapter) Read(h health) metav1.Condition {
	return metav1.Condition{Type: h.Check, Status: h.Status, Message: h.Text, LastTransitionTime: h.Since}
}

func (healthAdapter) Write(h health, to metav1.Condition, _ metav1.Time) health {
	h.Check, h.Status, h.Text, h.Since = to.Type, to.Status, to.Message, to.LastTransitionTime
	return h
}

func (healthAdapter) Validate(metav1.Condition) error { return nil } // its schema has no patterns

func ExampleNewEditor() {
	clock := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	editor := conditions.NewEditor(healthAdapter{}).WithClock(clock)

	var checks []health
	for range 2 {
		_, changed, err := editor.Set(&checks, metav1.Condition{
			Type: "Database", Status: metav1.ConditionTrue, Reason: "Answers", ObservedGeneration: 4,
		})
		fmt.Println(changed, err)
	}
	fmt.Println(checks[0].Check, checks[0].Since.UTC())
	fmt.Println(editor.Summarize(checks, conditions.Summary{}).Status)
	// Output:
	// true <nil>
	// false <nil>
	// Database 2026-03-01 12:00:00 +0000 UTC
	// True
}

func ExampleHistory() {
	var stored []metav1.Condition
	list := conditions.History(&stored, 10)
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionTrue} {
		if _, _, err := list.Set(metav1.Condition{Type: "Ready", Status: status, Reason: "Checked"}); err != nil {
			panic(err)
		}
	}
	newest, _ := list.Get("Ready")
	fmt.Println(len(stored), newest.Status)
	// Output: 2 True
}

func ExampleValidate() {
	err := conditions.Validate(metav1.Condition{Type: "Available", Status: metav1.ConditionTrue})
	fmt.Println(err)
	// Output: reason: Required value: use a CamelCase word, such as Succeeded
}

func ExampleSummary_type() {
	list := []metav1.Condition{{Type: "Database", Status: metav1.ConditionTrue, Reason: "Connected"}}
	healthy := conditions.Summarize(list, conditions.Summary{Type: "Healthy"})
	fmt.Println(healthy.Type, healthy.Status)
	// Output: Healthy True
}

func ExampleSummary() {
	list := []metav1.Condition{
		{Type: "Database", Status: metav1.ConditionTrue, Reason: "Connected"},
		{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "SlowDisk"},
	}
	ready := conditions.Summarize(list, conditions.Summary{Negative: []string{"Degraded"}})
	fmt.Println(ready.Status, ready.Reason)
	// Output: False SlowDisk
}
