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

// KeepOutcomes copies how the last passes ended. It is called before the check that one more pass changes nothing.
func (o *Operator) KeepOutcomes() {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	o.Passes.Before = maps.Clone(o.Passes.Outcome)
}

// Outcome is how a pass has ended.
type Outcome struct {
	Pass   int
	Result ctrl.Result
	Err    error
}

// HeldError returns an error if passes over the object fail while only another controller's finalizer keeps it. The caller holds the lock.
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

// problem returns how a pass failed, as text. It returns "" if the pass succeeded.
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

// Over returns the controller and the object of a pass. If a later pass over the object has run, it returns the zero value. The caller
// holds the lock.
func (p *Passes) Over(pass int) fakemanager.Target {
	for target, o := range p.Outcome {
		if o.Pass == pass {
			return target
		}
	}
	return fakemanager.Target{}
}
