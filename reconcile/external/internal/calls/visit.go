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

// Visit is what one pass does at a server.
type Visit struct {
	calls    *Calls
	object   types.NamespacedName
	uid      types.UID
	server   string
	isProbe  bool
	urgent   bool
	detached bool
	isPaid   bool // Next has paid for the next call
	putOff   bool
	goesOn   bool
	count    int // the number of calls
	answered bool
	trouble  error
	waitsFor string // what the pass could not be done for, as the label of the metric; empty if nothing
}

// Visit returns the visit of a pass over an object. It calls nothing.
func (c *Calls) Visit(object client.Object, server string) *Visit {
	return &Visit{calls: c, object: client.ObjectKeyFromObject(object), uid: object.GetUID(), server: server}
}

// SetUrgent says that a person waits for the pass, and that it is not a poll.
func (v *Visit) SetUrgent(urgent bool) { v.urgent = urgent }

// IsDetached reports whether a function goes on that has the object of the pass, although its context has ended.
func (v *Visit) IsDetached() bool { return v.detached }

// Do does what calls the API, if that is possible now. A panic in it becomes an error.
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

// wait returns the wait of a pass that the gate has denied, and nil if it was not denied. If the pass is not urgent, such as a poll, the retry
// has a low priority, behind what people have changed. It keeps the conditions too, since what they say still holds, unless the server cannot
// be reached.
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

// Next asks whether the pass may begin with another thing. It takes a token for the next call. All other calls, which follow from an
// observation, are made without asking: what was begun is done. The first thing is refused only before any call of the pass, so each pass that
// calls gets on.
func (v *Visit) Next(ctx context.Context, isFirst bool) error {
	if v.isPaid || isFirst && v.count > 0 { // the last call was not needed, or others were made
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

// PutOff returns the wait of a pass that has enough to do, and is followed by another one.
func (v *Visit) PutOff() error { return v.later(turns.Over) }

// later returns the wait of a pass whose turn is over. A poll comes after what a person has changed.
func (v *Visit) later(over error) error {
	if v.putOff = true; v.urgent {
		return over
	}
	return reconcile.LowPriority(over)
}

// inTheMiddleError is the wait for the quota of a pass that has done a part of its work.
type inTheMiddleError struct{ error }

func (e inTheMiddleError) Unwrap() error { return e.error }

// Is reports that it is [passcontext.ErrTurnOver].
func (inTheMiddleError) Is(target error) bool { return target == passcontext.ErrTurnOver }

// pay pays for a call. Only the first one of a pass may be refused.
func (v *Visit) pay(ctx context.Context) error {
	if v.count == 0 {
		if err := v.Next(ctx, true); err != nil {
			return err
		}
	}
	if !v.isPaid {
		v.calls.gate.charge(v.calls.now())
		if pass := passcontext.FromContext(ctx); pass != nil {
			_ = pass.Spend(passcontext.ByBlock) // it is made in any case
		}
	}
	v.isPaid = false
	v.count++
	return nil
}

// SetGoesOn says that an earlier pass has done a part of the work.
func (v *Visit) SetGoesOn(goesOn bool) { v.goesOn = goesOn }

// IsPutOff reports whether a later pass has to go on: the turn of this one is over, the quota is used up, or the server is busy.
func (v *Visit) IsPutOff() bool { return v.putOff }

// note notes what the answer to a call says of the server, and returns the error of the pass. late is whether the timeout of the call
// has passed.
func (v *Visit) note(err error, late bool) error {
	if throttled, ok := errors.AsType[*throttledError](err); ok {
		err = inWords{v.calls.gate.throttle(v.calls.now(), v.server, throttled), err}
	}
	r := resultOf(err, late)
	v.waitsFor = map[result]string{resultThrottled: waitsForThrottling, resultUnreachable: waitsForServer}[r]
	switch {
	case is[*panicError](err), !late && errors.Is(err, context.Canceled): // that says nothing of the server
		return err
	case r != resultUnreachable:
		v.answered = r != resultThrottled
		return err
	}
	err = reconcile.WithReason(reasonOf(err), withoutNames(err))
	v.trouble = cmp.Or(v.trouble, err)
	return err
}
