package operator

import (
	"fmt"
	"testing/synctest"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// ObserveChanges takes the server's changes since the last call. For each change it injects the planned fault, if there is one, and passes
// the change to the cache of the process.
func (o *Operator) ObserveChanges() {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if err := o.world.Server.MissingWebhook(); err != nil {
		o.world.Failures.AddLocked(err)
	}
	changes := o.world.History.Take()
	for i := range changes {
		o.world.History.Add(&changes[i])
		o.observeChange(&changes[i])
	}
}

func (o *Operator) observeChange(c *memoryserver.Change) {
	object := request.ObjectID{Kind: c.GVK, Name: c.Key}
	name := world.NameOfChange(c)
	if o.Leader == nil { // before the operator starts
		o.world.Plan.Count[o.world.References.NameAt(name, object)]++
		return
	}
	cache := o.Leader.Mgr.Cache()
	fault, at := o.world.Plan.Reach(plan.Point{Object: object, Name: o.world.References.NameAt(name, object), Watched: cache.Kinds.Watches(c.GVK), Twice: cache.Kinds.WatchesTwice(c.GVK), Gone: c.New == nil, Added: c.Old == nil, Action: o.Actions.Begun(), HasNext: o.Actions.HasNext()})
	o.world.Trace.Add(trace.Row{Change: name, Changed: c})
	if inject := atChanges[fault]; inject != nil {
		inject(&observed{operator: o, cache: cache, change: c, at: at, fault: fault})
	}
	cache.Kinds.Receive(*c)
}

// TravelToThePast ends the process if the next process is planned to start with an old cache. It reports whether it has ended the process.
func (o *Operator) TravelToThePast() bool {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	was := o.plannedPast
	if was == nil {
		return false
	}
	o.nextPast, o.plannedPast = was, nil
	o.Leader.Die()
	o.world.Trace.Add(trace.Row{
		What: "the process ends", Fault: kinds.TimeTravel,
		Answer: fmt.Sprintf("the next one sees %s as before: %s", was.GVK.Kind, was.change),
	})
	return true
}

// TakeNextUnseen reports whether a fault asks for the user's next action now, before the cache shows a deletion. It returns true only once
// for each such fault. The caller holds the lock.
func (o *Operator) TakeNextUnseen() bool {
	was := o.nextUnseen
	o.nextUnseen = false
	return was
}

// Observe waits until all goroutines of the run block, and then takes the changes that they have made.
func (o *Operator) Observe() {
	synctest.Wait()
	o.ObserveChanges()
}
