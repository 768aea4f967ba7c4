package calls

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
)

// Visit has the calls of one pass to a server.
type Visit struct {
	calls    *Calls
	object   types.NamespacedName
	uid      types.UID
	server   string
	isProbe  bool
	urgent   bool
	detached bool
	isPaid   bool // Next has taken a token for the next call
	putOff   bool
	goesOn   bool
	count    int // the number of calls
	answered bool
	trouble  error
	waitsFor string // why the pass could not do its work, as a label of the metric; empty if it could
}

// Visit returns the Visit for a pass over an object. It does not call the API.
func (c *Calls) Visit(object client.Object, server string) *Visit {
	return &Visit{calls: c, object: client.ObjectKeyFromObject(object), uid: object.GetUID(), server: server}
}

// SetUrgent sets whether a person waits for the result of the pass. A pass that is not urgent is a poll.
func (v *Visit) SetUrgent(urgent bool) { v.urgent = urgent }

// IsDetached reports whether a function still runs after its context has ended. It has the object of the pass.
func (v *Visit) IsDetached() bool { return v.detached }

// Do calls do, whose calls go to the API, if the server may be called now. A panic of do becomes an error.
func (v *Visit) Do(ctx context.Context, do func(ctx context.Context) error) (err error) {
	defer func() {
		if err == nil {
			v.waitsFor = ""
		}
		v.calls.waits.set(v.object, v.waitsFor)
	}()
	if err := v.calls.abandoned.err(v.uid); err != nil {
		v.waitsFor = waitsForReturn
		return err
	}
	if err := v.enter(); err != nil {
		v.putOff = true
		return err
	}
	defer v.leave()
	defer Recover(ctx, "a function of the resource", &err)
	return do(ctx)
}

func (v *Visit) enter() error {
	isProbe, denied := v.calls.gate.enter(v.calls.now(), v.server)
	v.isProbe = isProbe
	return v.wait(denied)
}

func (v *Visit) leave() {
	v.calls.gate.leave(v.calls.now(), v.server, v.isProbe, v.answered, v.trouble)
}

// wait returns the error for a pass that may not call the API now, or nil if d is nil. If the pass is not urgent, the next one has a low
// priority, so that objects that people have changed come first. The conditions then stay as they are, because they are still true. Only
// if the server cannot be reached, the conditions change.
func (v *Visit) wait(d *denial) error {
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

// Next returns an error if the pass must not begin with another thing. It takes a token of the quota for the next call. All later calls
// for this thing are made without Next, so that the pass finishes what it has begun. isFirst is true for the first thing. It is refused
// only before the first call of the pass, so each pass that calls the API makes progress.
func (v *Visit) Next(ctx context.Context, isFirst bool) error {
	if v.isPaid || isFirst && v.count > 0 { // the token was taken and not used, or the pass has already made calls
		return nil
	}
	if pass := passcontext.FromContext(ctx); pass != nil {
		if err := pass.Spend(passcontext.ByBlock); err != nil {
			return v.later(err)
		}
	}
	inTheMiddle := v.goesOn || v.count > 0
	err := v.wait(v.calls.gate.take(v.calls.now(), v.object, v.urgent, inTheMiddle))
	v.putOff, v.isPaid = err != nil, err == nil
	if v.putOff && inTheMiddle {
		return inTheMiddleError{err}
	}
	return err
}

// PutOff returns the error of a pass that has enough to do, so a later pass continues with the other things.
func (v *Visit) PutOff() error { return v.later(turns.Over) }

// later returns the error of a pass that has made its number of calls. The next pass of a poll has a low priority, so
// that objects that people have changed come first.
func (v *Visit) later(over error) error {
	if v.putOff = true; v.urgent {
		return over
	}
	return reconcile.LowPriority(over)
}

// inTheMiddleError is the error of a pass that has to wait for the quota after it has done a part of its work.
type inTheMiddleError struct{ error }

func (e inTheMiddleError) Unwrap() error { return e.error }

// Is makes errors.Is(err, [passcontext.ErrTurnOver]) true.
func (inTheMiddleError) Is(target error) bool { return target == passcontext.ErrTurnOver }

// pay takes a token for a call. Only the first call of a pass may be refused.
func (v *Visit) pay(ctx context.Context) error {
	if v.count == 0 {
		if err := v.Next(ctx, true); err != nil {
			return err
		}
	}
	if !v.isPaid {
		v.calls.gate.charge(v.calls.now())
		if pass := passcontext.FromContext(ctx); pass != nil {
			_ = pass.Spend(passcontext.ByBlock) // an error has no effect: the call is made in any case
		}
	}
	v.isPaid = false
	v.count++
	return nil
}

// SetGoesOn sets whether an earlier pass has done a part of the work.
func (v *Visit) SetGoesOn(goesOn bool) { v.goesOn = goesOn }

// IsPutOff reports whether a later pass has to continue: this pass has made its number of calls, the quota is used up, or the server
// must not be called now.
func (v *Visit) IsPutOff() bool { return v.putOff }

// note records what the answer to a call says about the server, and returns the error for the pass. late is true if the call has
// exceeded its timeout.
func (v *Visit) note(err error, late bool) error {
	if throttled, ok := errors.AsType[*throttledError](err); ok {
		err = inWords{v.calls.gate.throttle(v.calls.now(), v.server, throttled), err}
	}
	r := resultOf(err, late)
	v.waitsFor = map[result]string{resultThrottled: waitsForThrottling, resultUnreachable: waitsForServer}[r]
	switch {
	case is[*panicError](err), !late && errors.Is(err, context.Canceled): // the error says nothing about the server
		return err
	case r != resultUnreachable:
		v.answered = r != resultThrottled
		return err
	}
	err = reconcile.WithReason(reasonOf(err), withoutNames(err))
	v.trouble = cmp.Or(v.trouble, err)
	return err
}
