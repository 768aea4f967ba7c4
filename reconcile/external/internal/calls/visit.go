package calls

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
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

// wait returns the wait of a pass that is denied. A poll comes after what a person has changed, and keeps the conditions: what they say
// still holds, unless the server cannot be reached.
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

// take takes a token for the next call. Only before the first call of a pass it may be denied to a poll.
func (v *Visit) take(ctx context.Context) error {
	denied, err := v.calls.gate.take(ctx, v.calls.now(), v.urgent || v.count > 0)
	if v.count++; err != nil {
		return err
	}
	return v.wait(denied)
}

// note notes what the answer to a call says of the server, and returns the error of the pass. late is whether the timeout of the call
// has passed.
func (v *Visit) note(err error, late bool) error {
	if throttled, ok := errors.AsType[*throttledError](err); ok {
		v.calls.gate.throttle(v.calls.now(), v.server, throttled.after)
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
