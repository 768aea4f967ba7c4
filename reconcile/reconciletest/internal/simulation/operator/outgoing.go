package operator

import (
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// outgoing is a request, an effect or a query that is about to be sent. Its methods are called with the run's
// lock held; they may release it while they wait.
type outgoing struct {
	operator *Operator
	process  *Process
	call     *request.Call
	do       func(lost bool) error
	outside  *outside.Call // the call of an API of package fakeapi; nil: it is another request
}

// carryOut performs the request.
func (o *outgoing) carryOut(lost bool) error {
	err := o.operator.world.CarryOut(o.call, lost, o.do)
	o.call.After = o.operator.moment()
	o.failIfForeign()
	return err
}

// moment returns what decides how the run goes on. The caller holds the lock.
func (o *Operator) moment() request.Moment {
	now := o.world.Moment()
	now.Actions = o.Actions.Begun()
	return now
}

// answer records the answer that the operator gets, and returns it.
func (o *outgoing) answer(err error) error {
	o.call.Err = err
	return err
}
