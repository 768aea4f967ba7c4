package operatortest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Scenario is a sequence of actions that covers everything that an operator reacts to.
type Scenario struct {
	// Start returns the reconciler of a new process of the operator.
	Start func(client.Client) ctrlreconcile.Reconciler
	// Key of the object to reconcile.
	Key     client.ObjectKey
	Actions []Action
}

// Action is something that somebody other than the operator does.
type Action struct {
	Name string
	Do   func(*testing.T)
}

// Run runs the scenario with a fault. After each action it runs passes until nothing more happens. It returns the number of
// writes that the last process of the operator has tried.
func (s Scenario) Run(t *testing.T, history *History, f Fault) (writes int) {
	t.Helper()
	process := &Process{History: history, Fault: f}
	reconciler := s.Start(process.Client())
	for _, action := range s.Actions {
		action.Do(t)
		process.Lag = f.Lag
		for passes, quiet := 0, false; !quiet; passes++ {
			require.Less(t, passes, 20, "%s: the operator does not come to rest", action.Name)
			before := history.Len()
			_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.Key})
			require.NoError(t, err)
			switch {
			case process.Crashed:
				process = &Process{History: history}
				reconciler = s.Start(process.Client())
			case history.Len() > before:
				process.Lag = f.Lag
			case process.Lag > 0:
				process.Lag-- // the cache catches up
			default:
				quiet = true
			}
		}
	}
	return process.Writes
}

// Fault is a fault of a run: the process ends at a write, or reads are some writes old.
type Fault struct {
	// CrashAt is the number of the write, from 1, at which the process ends; 0 means never.
	CrashAt int
	// Committed is true if this write succeeds, although the process does not get the answer.
	Committed bool
	// Lag is the number of writes that reads are behind.
	Lag int
}

func (f Fault) String() string {
	switch {
	case f.Lag > 0:
		return fmt.Sprintf("reads %d writes old", f.Lag)
	case f.Committed:
		return fmt.Sprintf("crash after write %d", f.CrashAt)
	default:
		return fmt.Sprintf("crash before write %d", f.CrashAt)
	}
}

// EachFault calls run in a subtest for the faults of a run with a number of writes: a crash at each moment between two writes, and reads up to
// three writes old. A crash after a write and a crash before the next one leave the same objects, so the moments take turns: the operator's
// exploration tries both at each.
func EachFault(t *testing.T, writes int, run func(*testing.T, Fault)) {
	faults := []Fault{{Lag: 1}, {Lag: 2}, {Lag: 3}}
	for written := range writes {
		if written%2 == 0 {
			faults = append(faults, Fault{CrashAt: written + 1})
		} else {
			faults = append(faults, Fault{CrashAt: written, Committed: true})
		}
	}
	faults = append(faults, Fault{CrashAt: writes, Committed: true})
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			run(t, f)
		})
	}
}
