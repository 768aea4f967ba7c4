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

// Visit is one pass at a server.
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
	waitsFor string // the reason why the pass could not do its work, as the label of the metric; empty if it could
}

// Visit returns the visit of a pass over an object. It does not call the API.
func (c *Calls) Visit(object client.Object, server string) *Visit {
	return &Visit{calls: c, object: client.ObjectKeyFromObject(object), uid: object.GetUID(), server: server}
}

// SetUrgent sets whether a person waits for the pass. A pass that is not urgent is a poll.
func (v *Visit) SetUrgent(urgent bool) { v.urgent = urgent }

// IsDetached reports whether a function that has the object of the pass still runs after its context has ended.
func (v *Visit) IsDetached() bool { return v.detached }

// Do calls do, which calls the API, if calls are possible now. A panic of do becomes an error.
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

// wait returns the wait of a pass that the gate has denied, or nil if denied is nil. If the pass is not urgent, its retry has a low
// priority, so that changes of people come first. The wait also keeps the conditions, which are still true. Only if the server cannot be
// reached do the conditions change.
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

// Next asks whether the pass may begin with another thing. It takes a token for the next call. All other calls follow from an observation,
// and are made without asking, so that the pass finishes what it has begun. The first thing is refused only before the first call of the
// pass, so each pass that calls the API makes progress.
func (v *Visit) Next(ctx context.Context, isFirst bool) error {
	if v.isPaid || isFirst && v.count > 0 { // the last call was not needed, or the pass has already made other calls
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

// PutOff returns the wait of a pass that has enough to do, so that a later pass has to continue.
func (v *Visit) PutOff() error { return v.later(turns.Over) }

// later returns the wait of a pass whose turn is over. A poll gets a low priority, so that changes of people come first.
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
			_ = pass.Spend(passcontext.ByBlock) // the call is made in any case
		}
	}
	v.isPaid = false
	v.count++
	return nil
}

// SetGoesOn says that an earlier pass has done a part of the work.
func (v *Visit) SetGoesOn(goesOn bool) { v.goesOn = goesOn }

// IsPutOff reports whether a later pass has to continue: the turn of this pass is over, the quota is used up, or the gate has denied the
// pass.
func (v *Visit) IsPutOff() bool { return v.putOff }

// note notes what the answer to a call says about the server, and returns the error of the pass. late reports whether the timeout of
// the call has passed.
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
