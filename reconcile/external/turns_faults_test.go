//go:build !race

package external_test

import (
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A pass may end between any two calls. A later pass then continues, in the same process or in
// another one.
func TestTurnsSurviveEveryFault(t *testing.T) {
	alice := newAccount(func(s *AccountSpec) { s.Login = "alice@a,alice@b" })
	edit := func(change func(*AccountSpec)) reconciletest.Action {
		return reconciletest.Change(alice, func(a *Account) { change(&a.Spec) })
	}
	s := scenario(external.ByKey, nil, nil, []reconciletest.Action{
		reconciletest.Create(alice).Then(has("alice@a default/alice 1", "alice@b default/alice 1")),
		edit(func(s *AccountSpec) { s.Login, s.Quota = "alice@b,alice@c", 2 }).Then(has("alice@b default/alice 2", "alice@c default/alice 2")),
		reconciletest.Delete(alice).Then(has()),
	})
	s.Start = func(p *reconciletest.Process) error {
		r := resource(directoryClient{p.External().(*directory).Client(p), external.ByKey}, external.ByKey)
		r.Grace = 15 * time.Second // the API shows a created thing after up to 10 s
		several(&r)
		return newReconciler(p.Manager(), r).WithTurns(1, time.Hour).Complete()
	}
	s.Options.Pairs = 20
	reconciletest.Explore(t, s)
}
