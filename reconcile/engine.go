package reconcile

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/internal/step"
	"github.com/opblocks/opblocks/reconcile/internal/builders"
	"github.com/opblocks/opblocks/reconcile/internal/status"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
)

// engine has the fields that all passes of a reconciler share. It does not know the type of the objects, so passes and the functions that
// they call need no type parameter.
type engine struct {
	client client.Client

	// The With methods set these.
	clock    clock.PassiveClock
	filter   func(obj client.Object) bool // nil for all objects
	retries  Retries                      // prepare fills in the defaults
	turns    turns.Bounds                 // limits of the work of one pass
	recorder events.EventRecorder         // nil without a manager
	tracer   passTracer

	// prepare sets these, once.
	typ        reflect.Type // the struct, not the pointer
	kind       schema.GroupVersionKind
	fieldOwner client.FieldOwner
	status     status.Type
	isHistory  bool // the conditions are a history
	stepClient *stepClient
	passSteps  []passStep
	finalizers []string // the finalizers of all steps

	formerFinalizers []string // the former finalizers of all steps
	settlers         int      // how many steps, from the first on, can be left out of a pass
	builders         builders.Reconciler

	metrics *metrics // nil without a manager

	// A pass stores the following for later passes.
	memory    memory
	receivers sync.Pool         // empty objects to read into
	writes    *ownwrites.Writes // the API server's answers to our own writes, which the cache may not show yet
}

// passStep is a step as a pass runs it.
type passStep struct {
	*stepOptions
	self      any // the step
	hooks     step.Hooks
	reconcile action
	finalize  action // nil if the step does not clean up
}

// action is the Reconcile or the cleanup of a step.
type action func(ctx context.Context, c client.Client, obj client.Object) error

// actionOf returns the action for a function that gets objects of type T.
func actionOf[T client.Object](do stepFunc[T]) action {
	return func(ctx context.Context, c client.Client, obj client.Object) error { return do(ctx, c, obj.(T)) }
}

// finalizerNames returns the finalizers for which the step has a cleanup.
func (s *passStep) finalizerNames() []string {
	if s.finalize == nil {
		return nil
	}
	return append([]string{s.finalizer}, s.formerFinalizers...)
}

// empty returns a new empty object of the reconciler's kind.
func (e *engine) empty() client.Object { return reflect.New(e.typ).Interface().(client.Object) }

// forget drops everything that the engine remembers of an object, because the object does not exist any more or belongs to another
// operator.
func (e *engine) forget(name types.NamespacedName) {
	e.memory.endStatusLoop(name, e.metrics.loopsOrNil())
	e.memory.forget(name)
	e.writes.Forget(e.empty(), name)
	e.metrics.forget(name)
	for i := range e.passSteps {
		if s, ok := e.passSteps[i].self.(step.Forgetful); ok {
			s.Forget(name)
		}
	}
}

// copyOf returns the copy of an object that the steps get. The copy has no managed fields: no step needs them, and
// copying them would take a third of the time.
func (e *engine) copyOf(obj client.Object) client.Object {
	lean := e.receivers.Get().(client.Object)
	defer e.release(lean)
	reflect.ValueOf(lean).Elem().Set(reflect.ValueOf(obj).Elem())
	lean.SetManagedFields(nil)
	return lean.DeepCopyObject().(client.Object)
}

// release empties the object into which a pass has read, and puts it back into the pool. With a filter, release drops
// the object: the filter is a function of the user, and may have kept it.
func (e *engine) release(receiver client.Object) {
	if e.filter != nil {
		return
	}
	reflect.ValueOf(receiver).Elem().SetZero()
	e.receivers.Put(receiver)
}
