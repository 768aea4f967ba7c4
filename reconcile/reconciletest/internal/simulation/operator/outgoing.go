package operator

import (
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// outgoing is a request, an effect or a query that is about to be sent. Callers of its methods hold the run's lock. A method may release
// the lock while it waits.
type outgoing struct {
	operator *Operator
	process  *Process
	call     *request.Call
	do       func(lost bool) error
	converts error         // the answer if the webhook that converts the object cannot be reached; nil: no webhook converts it
	broken   error         // the error of calls of webhooks; nil: they can be reached
	outside  *outside.Call // the call of an API of package fakeapi; nil for any other request
}

// carryOut performs the request.
func (o *outgoing) carryOut(lost bool) error {
	server := o.operator.world.Server
	server.WatchWebhooks(o.broken)
	err := o.operator.world.CarryOut(o.call, lost, o.do)
	o.call.Reviewed = server.WebhookCalled()
	o.call.After = o.operator.moment()
	o.failIfForeign()
	return err
}

// noteWebhooks notes which webhooks may be called for the request. It also changes the version of the request's kind to the version in
// which the server reports changes.
func (o *outgoing) noteWebhooks() {
	c, server := o.call, o.operator.world.Server
	if c.External != "" {
		return
	}
	o.converts = server.UnreachableConversion(c.Kind)
	c.Converted = o.converts != nil
	c.Reviewed = c.IsWrite() && server.Reviews(c.Kind, c.Subresource, false)
	c.Kind = server.Canonical(c.Kind)
}

// moment returns the present moment of the run: two moments are equal if only reads have happened between them. The caller holds the lock.
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
