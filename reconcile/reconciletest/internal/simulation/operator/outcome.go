package operator

import (
	"fmt"
	"maps"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// KeepOutcomes notes how the last passes ended before the check that the operator rests.
func (o *Operator) KeepOutcomes() {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	o.Passes.Before = maps.Clone(o.Passes.Outcome)
}

// Outcome is how a pass ended.
type Outcome struct {
	Pass   int
	Result ctrl.Result
	Err    error
}

// HeldError returns an error if passes over an object fail while another controller holds it. The caller holds the lock.
func (o *Operator) HeldError(id request.ObjectID) error {
	for _, target := range slices.SortedFunc(maps.Keys(o.Passes.Outcome), fakemanager.Target.Compare) {
		if target.Request.NamespacedName != id.Name {
			continue
		}
		if problem := o.Passes.Outcome[target].problem(o.world.Log); problem != "" {
			return fmt.Errorf("%s is being deleted, and only the finalizer of another controller is left; passes over %s end %s\n"+
				"An object that is being deleted and no longer has your finalizer needs nothing more", id, DescribeTarget(target), problem)
		}
	}
	return nil
}

// problem describes how a pass failed. It returns "" if the pass succeeded.
func (o Outcome) problem(log *request.Log) string {
	switch {
	case o.Err != nil:
		return "in an error: " + o.Err.Error() + bubble.Hint(o.Err)
	case o.Result.RequeueAfter > 0:
		for _, request := range log.All() {
			if request.Pass == o.Pass && request.IsRefused() {
				return fmt.Sprintf("with a delay of %s, since %s is refused: %s", o.Result.RequeueAfter, request.String(), request.Err)
			}
		}
	case o.Result.Requeue: //nolint:staticcheck // reconcilers still use it
		return "by asking for another one (Requeue)"
	}
	return ""
}

// Over returns the object of a pass, if no later pass over this object has run. Otherwise it returns the zero value. The caller holds the
// lock.
func (p *Passes) Over(pass int) fakemanager.Target {
	for target, o := range p.Outcome {
		if o.Pass == pass {
			return target
		}
	}
	return fakemanager.Target{}
}
