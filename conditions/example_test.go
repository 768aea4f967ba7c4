package conditions_test

import (
	"errors"
	"fmt"

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
	// invalid condition "Available": reason: Required value: give a CamelCase word, such as Succeeded
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
	ready := conditions.Summarize(list, conditions.NegativePolarity("Degraded"))
	fmt.Println(ready.Type, ready.Status, ready.Reason, ready.ObservedGeneration)
	fmt.Println(ready.Message)
	// Output:
	// Ready False PodsNotReady 3
	// Cache: 2 of 3 pods ready; Degraded: disk is slow
}

func ExampleForTypes() {
	list := []metav1.Condition{{Type: "Database", Status: metav1.ConditionTrue, Reason: "Connected"}}
	ready := conditions.Summarize(list, conditions.ForTypes("Database", "Cache"))
	fmt.Println(ready.Status, ready.Reason, ready.Message)
	// Output: Unknown Missing no Cache condition yet
}

func ExampleSuccess() {
	list := []metav1.Condition{{Type: "User", Status: metav1.ConditionTrue, Reason: "Created"}}
	ready := conditions.Summarize(list, conditions.Success("ProvisionSucceeded", "The user is there."))
	fmt.Println(ready.Reason, ready.Message)
	// Output: ProvisionSucceeded The user is there.
}

func ExampleStandard() {
	var status struct{ Conditions []metav1.Condition }
	var binder conditions.Binder = conditions.Standard()
	list, err := binder.Bind(&status.Conditions) // a pointer that reflection found
	if err != nil {
		panic(err)
	}
	_, _, _ = list.Set(metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "PodsReady"})
	fmt.Println(len(status.Conditions), conditions.Summarize(list.All()).Status)
	// Output: 1 True
}

func ExampleAppend() {
	var history []metav1.Condition
	for _, reason := range []string{"Created", "Scheduled", "Scheduled", "Restarted"} {
		_, err := conditions.Append(&history, metav1.Condition{Type: "Run", Status: metav1.ConditionTrue, Reason: reason}, 2)
		if err != nil {
			panic(err)
		}
	}
	for _, c := range history {
		fmt.Println(c.Reason)
	}
	// Output:
	// Scheduled
	// Restarted
}
