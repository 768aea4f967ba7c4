package operator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// atRequests has a function for each kind of fault that is injected at requests. The function makes the fault happen, and returns the
// answer that the operator gets.
var atRequests = map[kinds.Fault]func(o *outgoing) error{
	kinds.CrashBefore:         (*outgoing).crashBefore,
	kinds.CrashAfter:          (*outgoing).crashAfter,
	kinds.CrashDowntime:       (*outgoing).crashDowntime,
	kinds.CrashUnseen:         (*outgoing).crashUnseen,
	kinds.CrashDowntimeUnseen: (*outgoing).crashDowntimeUnseen,
	kinds.ConcurrentAction:    (*outgoing).concurrentAction,
	kinds.Timeout:             (*outgoing).timeout,
	kinds.TimeoutBefore:       (*outgoing).timeoutBefore,
	kinds.Conflict:            (*outgoing).conflict,
	kinds.TooManyRequests:     (*outgoing).tooManyRequests,
	kinds.InternalError:       (*outgoing).internalError,
	kinds.ConnectionRefused:   (*outgoing).connectionRefused,
	kinds.AlreadyExists:       (*outgoing).alreadyExists,
	kinds.NotFound:            (*outgoing).notFound,
	kinds.LeaderChange:        (*outgoing).leaderChange,
	kinds.StaleAnswer:         (*outgoing).staleAnswer,
	kinds.Outage:              (*outgoing).beginOutage,

	kinds.WebhookUnreachable:    (*outgoing).webhookUnreachable,
	kinds.ConversionUnreachable: (*outgoing).conversionUnreachable,
}

// atChanges has a function for each kind of fault that is injected at changes of objects. The function is called before the cache receives
// the change.
var atChanges = map[kinds.Fault]func(o *observed){
	kinds.Stale:          func(o *observed) { o.freeze(o.cache.Kinds.FreezeForPasses(o.change, 1)) },
	kinds.StaleLong:      func(o *observed) { o.freeze(o.cache.Kinds.FreezeForPasses(o.change, 2)) },
	kinds.StaleObjects:   func(o *observed) { o.freeze(o.cache.Kinds.FreezeWhole(o.change)) },
	kinds.StaleMetadata:  func(o *observed) { o.freeze(o.cache.Kinds.FreezeMetadata(o.change)) },
	kinds.MissedEvent:    func(o *observed) { o.freeze(o.cache.Kinds.FreezeUntilThaw(o.change)) },
	kinds.MissedDeletion: (*observed).missDeletion,
	kinds.TimeTravel:     (*observed).planTravel,
}

// atBatches is the kind of fault that is injected where several requests are sent at once: see batch.go.
const atBatches = kinds.Reversed

// die ends the process. Its caller gets errDead. The log and the trace show result, the result of the request itself.
func (o *outgoing) die(result error) error {
	o.call.Err = result
	o.process.Die()
	return errDead
}

func (o *outgoing) crashBefore() error { return o.die(errDead) }

func (o *outgoing) crashAfter() error { return o.die(o.carryOut(true)) }

func (o *outgoing) crashDowntime() error {
	result := o.carryOut(true)
	o.operator.down = true
	return o.die(result)
}

func (o *outgoing) crashUnseen() error {
	before := o.operator.world.Server.Revision()
	result := o.carryOut(true)
	if o.process.Mgr.Cache().Kinds.Watches(o.call.Kind) {
		o.operator.nextPast = &past{Past: fakemanager.Past{GVK: o.call.Kind, Revision: before}}
	}
	return o.die(result)
}

func (o *outgoing) crashDowntimeUnseen() error {
	err := o.crashUnseen()
	o.operator.down = true
	return err
}

func (o *outgoing) concurrentAction() error {
	if !o.operator.Actions.DoNext() {
		o.call.Fault = "" // the action failed, so it is not done now, and the trace shows no fault
	}
	return o.answer(o.carryOut(false))
}

func (o *outgoing) timeout() error {
	if err := o.carryOut(true); err != nil {
		return o.answer(err)
	}
	return o.answer(o.networkError(context.DeadlineExceeded))
}

func (o *outgoing) timeoutBefore() error {
	return o.answer(o.networkError(context.DeadlineExceeded))
}

func (o *outgoing) conflict() error {
	o.operator.world.Others.Write(o.call)
	return o.answer(o.carryOut(false))
}

func (o *outgoing) tooManyRequests() error {
	if o.call.HTTP || o.call.API {
		return o.answer(outside.Refusal{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	}
	return o.answer(apierrors.NewTooManyRequests("the server has asked for the client to wait", 1))
}

func (o *outgoing) internalError() error {
	switch {
	case o.call.HTTP:
		return o.answer(outside.Refusal{Status: http.StatusServiceUnavailable})
	case o.call.API:
		return o.answer(outside.Refusal{Status: http.StatusInternalServerError})
	}
	return o.answer(apierrors.NewInternalError(fmt.Errorf("etcdserver: leader changed")))
}

func (o *outgoing) connectionRefused() error {
	return o.answer(o.networkError(syscall.ECONNREFUSED))
}

// alreadyExists carries out a creation, and answers as if the client had sent the creation a second time. If the name is generated, it does
// not carry out the creation, since a second attempt would get another name. Then it answers as if the name were taken.
func (o *outgoing) alreadyExists() error {
	if !strings.HasSuffix(o.call.Object.Name, "*") {
		if err := o.carryOut(true); err != nil {
			return o.answer(err)
		}
	}
	resource := schema.GroupResource{Group: o.call.Kind.Group, Resource: strings.ToLower(o.call.Kind.Kind) + "s"}
	return o.answer(apierrors.NewAlreadyExists(resource, o.call.Object.Name))
}

func (o *outgoing) notFound() error {
	o.operator.world.Others.Remove(o.call)
	return o.answer(o.carryOut(false))
}

// leaderChange lets another replica lead until that is quiet. Then the old leader carries out its request, unless it has died.
func (o *outgoing) leaderChange() error {
	if !o.operator.waitForNewLeader(o.process) {
		return o.answer(errDead)
	}
	return o.answer(o.carryOut(false))
}

// networkError returns the network error that the caller of the request sees.
func (o *outgoing) networkError(err error) error {
	c := o.call
	if c.External != "" {
		return fmt.Errorf("%s: %w", c.External, err)
	}
	return &url.Error{Op: strings.ToUpper(c.Verb[:1]) + c.Verb[1:], URL: "https://api.example.com/" + strings.ToLower(c.Kind.Kind), Err: err}
}

func (o *outgoing) staleAnswer() error {
	o.outside.Past = true
	return o.answer(o.carryOut(false))
}

func (o *outgoing) beginOutage() error {
	o.operator.world.APIs.BeginOutage(o.outside.API, o.outside.Outage)
	return o.answer(errOutage)
}

// webhookUnreachable carries out the request while its webhooks cannot be reached.
func (o *outgoing) webhookUnreachable() error {
	o.broken = syscall.ECONNREFUSED
	return o.answer(o.carryOut(false))
}

func (o *outgoing) conversionUnreachable() error { return o.answer(o.converts) }

// observed is a change of an object that the cache is about to receive.
type observed struct {
	operator *Operator
	cache    *fakemanager.Cache
	change   *memoryserver.Change
	at       plan.Point
	fault    kinds.Fault // the fault that is planned there
}

// freeze notes that a fault has frozen the change's kind in the cache. frozen is false if the cache has not frozen it: the kind is not
// watched, or is frozen already.
func (o *observed) freeze(frozen bool) {
	if !frozen {
		return
	}
	w := o.operator.world
	w.Plan.NoteInjected(o.fault, o.at)
	w.Trace.Add(trace.Row{What: "  " + o.at.Name, Fault: o.fault, Answer: fmt.Sprintf("the cache of %s stays as it is", o.change.GVK.Kind)})
}

func (o *observed) missDeletion() {
	o.operator.nextUnseen = o.at.Gone && o.at.HasNext && o.cache.Kinds.FreezeUntilThaw(o.change)
	o.freeze(o.operator.nextUnseen)
}

// planTravel plans that the next process starts with an old cache, which shows the kind of the object as it was before this change.
func (o *observed) planTravel() {
	c := o.change
	if !o.at.Watched || o.operator.plannedPast != nil {
		return
	}
	was := &past{Past: fakemanager.Past{GVK: c.GVK, Revision: c.Revision - 1}, change: fmt.Sprintf("%s #%d", o.at.Name, o.at.Nth)}
	if c.Old != nil && c.New != nil {
		was.change += " (" + strings.Join(state.ChangedPaths(c.Old, c.New), ", ") + ")"
	}
	o.operator.plannedPast = was
	o.operator.world.Plan.NoteInjected(o.fault, o.at)
}
