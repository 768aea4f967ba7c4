package operator

import (
	"context"
	"fmt"
	"net/http"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// errOutage is the answer to each call of an API during an outage.
var errOutage = outside.Refusal{Status: http.StatusServiceUnavailable}

// reachAPI finds out whether the request goes to an API of package fakeapi, and notes the call. The caller holds the lock.
func (o *outgoing) reachAPI(ctx context.Context) {
	to := outside.FromContext(ctx)
	if to == nil || o.call.External == "" {
		return
	}
	o.outside, o.call.API = to, true
	o.call.HasPast = to.HasPast != nil && to.HasPast()
	o.operator.world.APIs.Add(to.API)
}

// noteObject tells the API for which object the operator calls it.
func (o *outgoing) noteObject() {
	if o.outside == nil || o.process.Pass == nil {
		return
	}
	o.outside.Pass, o.outside.Object = o.call.Pass, o.operator.world.Log.ReadFirst(o.call.Pass, o.process.Pass.target.Request.NamespacedName)
}

// isInOutage reports whether an outage prevents the request, and counts it.
func (o *outgoing) isInOutage() bool {
	if o.outside == nil || !o.operator.world.APIs.IsInOutage(o.outside.API) {
		return false
	}
	o.operator.world.APIs.Prevented++
	return true
}

// failIfForeign fails the run if the request has changed a thing of another owner.
func (o *outgoing) failIfForeign() {
	if o.outside == nil || o.outside.Foreign == "" {
		return
	}
	object := ""
	if o.outside.Object != (request.ObjectID{}) {
		object = " for " + o.outside.Object.String()
	}
	o.operator.world.Failures.AddLocked(failure.Finding{Kind: kinds.ChangesForeign, Asked: true, Cause: "a thing of others is changed outside", Err: fmt.Errorf("pass %d%s %s\n"+
		"That a thing has the right name does not prove whose it is: confirm that this object has created it, by a record, a token or a tag, before it is changed or deleted", o.outside.Pass, object, o.outside.Foreign)})
}
