package reconciletest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A test of an operator: it survives every fault, and its role grants what it asks for and nothing more.
func ExampleExplore() {
	test := func(t *testing.T) {
		report := reconciletest.Explore(t, migrates())
		reconciletest.AssertRole(t, "../config/rbac/role.yaml", []*reconciletest.Report{report})
	}
	fmt.Printf("%T\n", test)
	// Output: func(*testing.T)
}

// While a scenario is written, the runs without faults are enough. They also show which rights of the role are not needed.
func ExampleOptions_withoutFaults() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, with(migrates(), reconciletest.Options{WithoutFaults: true}))
	fmt.Println(len(report.Failures), "failures,", len(report.Survived), "faults")
	// Output: 0 failures, 0 faults
}

// If the operator survives all single faults, pairs of faults are tried as well, here a sample.
func ExampleOptions_pairs() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, with(migrates(), reconciletest.Options{Limit: 5, Pairs: 3, Budget: time.Minute}))
	fmt.Println(report.Runs-1, "runs with faults,", len(report.Failures), "failures")
	// Output: 8 runs with faults, 0 failures
}

// Another exploration has tried the faults at the creation.
func ExampleAction_WithoutFaults() {
	t := new(testing.T) // in a test it is the function's own
	scenario := migrates()
	scenario.Actions = []reconciletest.Action{reconciletest.Create(shop()).WithoutFaults(), reconciletest.Delete(shop())}
	report := reconciletest.ExploreQuietly(t, scenario)
	fmt.Println(report.Spared > 0, len(report.Failures), "failures")
	// Output: true 0 failures
}

// What is left out is in the report.
func ExampleOptions_skip() {
	t := new(testing.T) // in a test it is the function's own
	scenario := migrates()
	scenario.Options = reconciletest.Options{
		SkipFaults:   []reconciletest.FaultKind{reconciletest.Faults.TimeTravel},
		SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.BreaksConvention},
		Limit:        5,
	}
	fmt.Println(len(reconciletest.ExploreQuietly(t, scenario).Failures), "failures")
	// Output: 0 failures
}

// The line "replay it" of a report names the fault. Here it is survived.
func ExampleOptions_replay() {
	t := new(testing.T) // in a test it is the function's own
	report := reconciletest.ExploreQuietly(t, with(migrates(), reconciletest.Options{Replay: "crash after: create Job default/web #1"}))
	fmt.Println(report.Runs, "runs,", len(report.Failures), "failures")
	// Output: 2 runs, 0 failures
}

// A person looks at the cloud, and takes the machine away. The operator gets no event for that.
func ExampleDoExternal() {
	t := new(testing.T) // in a test it is the function's own
	scenario := rents()
	scenario.Actions = append(scenario.Actions, reconciletest.DoExternal("take the machine away", func(c *cloud) error {
		fmt.Println("ready:", c.ready)
		delete(c.created, "web")
		delete(c.ready, "web")
		return nil
	}), reconciletest.Wait(time.Minute)) // an operator that looks every minute would notice
	reconciletest.Run(t, scenario, func(*testing.T, *reconciletest.Env) {})
	// Output: ready: map[web:true]
}

// What may rightly differ between two runs is not compared.
func ExampleIgnore() {
	t := new(testing.T) // in a test it is the function's own
	scenario := migrates()
	scenario.Ignore = reconciletest.Ignore{
		Fields:       map[string][]string{"Shop": {"status.message"}},
		Kinds:        []string{"Report.example.com"},
		SecretValues: true, Derived: []string{"example.com/password-hash"},
	}
	fmt.Println(len(reconciletest.ExploreQuietly(t, with(scenario, reconciletest.Options{Limit: 5})).Failures), "failures")
	// Output: 0 failures
}

// Each wait is compared with its own result, and not with other moments of the same waits.
func ExampleOptions_eachAction() {
	t := new(testing.T) // in a test it is the function's own
	scenario := migrates()
	scenario.Actions = append(scenario.Actions, reconciletest.Wait(time.Minute))
	fmt.Println(len(reconciletest.ExploreQuietly(t, with(scenario, reconciletest.Options{EachAction: true, Limit: 5})).Failures), "failures")
	// Output: 0 failures
}
