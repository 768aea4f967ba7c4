package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	timeout  time.Duration // for each call
	calls    int
	answered bool
	trouble  error
}

// during does what calls the API, if that is possible now.
func (v *visit) during(ctx context.Context, do func(ctx context.Context) error) error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	return do(ctx)
}

// call makes a call to the API, which ends after the timeout.
func (v *visit) call(ctx context.Context, do func(ctx context.Context) error) error {
	if err := v.take(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	err := do(limited)
	late := err != nil && limited.Err() != nil && ctx.Err() == nil
	if late {
		err = fmt.Errorf("no answer within %v: %w", v.timeout, err)
	}
	return v.note(err, late)
}

// enter begins the visit, or returns the wait of a pass that is denied.
func (v *visit) enter() error {
	isProbe, denied := v.gate.enter(v.now(), v.server)
	v.isProbe = isProbe
	return v.wait(denied)
}

func (v *visit) leave() { v.gate.leave(v.now(), v.server, v.isProbe, v.answered, v.trouble) }

// isAboutCalls reports whether the denial is about the number of calls.
func (d *denial) isAboutCalls() bool { return d.reason == ReasonRateLimited || d.reason == ReasonBusy }

// wait returns the wait of a pass that is denied. A poll keeps the conditions: what they say still holds, unless the server cannot be
// reached.
func (v *visit) wait(d *denial) error {
	if d == nil {
		return nil
	}
	err := reconcile.Wait(d.reason, d.after, "%s", d.message)
	if !v.urgent && d.isAboutCalls() {
		return reconcile.KeepConditions(err)
	}
	return err
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
	if _, ours := errors.AsType[*unreachableError](err); !ours && !late && !isNetwork(err) {
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
