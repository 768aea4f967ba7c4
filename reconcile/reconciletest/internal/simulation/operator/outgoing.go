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
	converts error         // the answer if the webhook that converts the object cannot be reached; nil: none converts it
	broken   error         // why webhooks cannot be reached; nil: they can
	outside  *outside.Call // the call of an API of package fakeapi; nil: it is another request
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

// noteWebhooks notes which webhooks may be called for the request. It also replaces the version in the request's kind by the version in
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
