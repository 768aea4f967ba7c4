package external

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/opblocks/opblocks/reconcile"
)

// visit is what one pass does at a server.
type visit struct {
	*gate
	server   string
	isProbe  bool
	urgent   bool
	now      func() time.Time
	calls    int
	answered bool
	trouble  error
	waitsFor string // what the pass could not be done for, as the label of the metric; empty if nothing
}

// enter begins the visit, or returns the wait of a pass that is denied.
func (v *visit) enter() error {
	isProbe, denied := v.gate.enter(v.now(), v.server)
	v.isProbe = isProbe
	return v.wait(denied)
}

func (v *visit) leave() { v.gate.leave(v.now(), v.server, v.isProbe, v.answered, v.trouble) }

// wait returns the wait of a pass that is denied. A poll comes after what a person has changed, and keeps the conditions: what they say
// still holds, unless the server cannot be reached.
func (v *visit) wait(d *denial) error {
	if d == nil {
		return nil
	}
	v.waitsFor = d.waitsFor
	err := reconcile.Wait(d.reason, d.after, "%s", d.message)
	switch {
	case v.urgent:
		return err
	case d.waitsFor == waitsForServer:
		return reconcile.LowPriority(err)
	}
	return reconcile.LowPriority(reconcile.KeepConditions(err))
}

// take takes a token for the next call. Only before the first call of a pass it may be denied to a poll.
func (v *visit) take(ctx context.Context) error {
	denied, err := v.gate.take(ctx, v.now(), v.urgent || v.calls > 0)
	if v.calls++; err != nil {
		return err
	}
	return v.wait(denied)
}

// note notes what the answer to a call says of the server, and returns the error of the pass. late is whether the timeout of the call
// has passed.
func (v *visit) note(err error, late bool) error {
	if throttled, ok := errors.AsType[*throttledError](err); ok {
		v.throttle(v.now(), v.server, throttled.after)
	}
	r := resultOf(err, late)
	v.waitsFor = map[result]string{resultThrottled: waitsForThrottling, resultUnreachable: waitsForServer}[r]
	switch {
	case is[*panicError](err), !late && errors.Is(err, context.Canceled): // that says nothing of the server
		return err
	case r != resultUnreachable:
		v.answered = true
		return err
	}
	err = reconcile.WithReason(reasonOf(err), err)
	v.trouble = cmp.Or(v.trouble, err)
	return err
}

// reasonOf returns the reason that the author has given the error of a server that cannot be reached, or else Unreachable.
func reasonOf(err error) string {
	if given, ok := errors.AsType[reconcile.Reasoner](err); ok {
		return given.Reason()
	}
	return ReasonUnreachable
}

// isNetwork reports whether an error is of the network: the client of net/http and the connections of package net return such.
func isNetwork(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok && !errors.Is(err, context.Canceled)
}
