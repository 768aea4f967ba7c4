package operatortest

import (
	"testing"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Story is a life in which everything happens that an operator answers to.
type Story struct {
	// Begin gives the reconciler of a process that begins.
	Begin func(client.Client) ctrlreconcile.Reconciler
	// Key is of the object that the passes are over.
	Key  client.ObjectKey
	Acts []Act
}

// Act is a write of somebody else.
type Act struct {
	Name string
	Do   func(*testing.T)
}

// Tell tells the story with a fault. After each act it brings passes until nothing more happens. It gives the number of
// writes that the operator tried since it began.
func (s Story) Tell(t *testing.T, history *History, f Fault) (writes int) {
	t.Helper()
	process := &Process{History: history, Fault: f}
	reconciler := s.Begin(process.Client())
	for _, act := range s.Acts {
		act.Do(t)
		process.Lag = f.Lag
		for passes, quiet := 0, false; !quiet; passes++ {
			require.Less(t, passes, 20, "%s: it does not become quiet", act.Name)
			before := history.Len()
			_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.Key})
			require.NoError(t, err)
			switch {
			case process.Crashed:
				process = &Process{History: history}
				reconciler = s.Begin(process.Client())
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
