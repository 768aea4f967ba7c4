package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/reconcile/internal/builders"
	"github.com/opblocks/opblocks/reconcile/internal/requestlog"
	"github.com/opblocks/opblocks/reconcile/internal/status"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
)

// Reconciler runs the steps for objects of type T. It is a controller-runtime reconciler. Make it with [For] or [New], and
// call its With methods before the first pass.
type Reconciler[T client.Object] struct {
	engine
	steps []NamedStep[T]

	// The With methods set these.
	binder        conditions.Binder           // nil: metav1.Condition
	history       func(obj T) conditions.List // nil: the conditions are an ordinary list
	withoutStatus bool

	// For, and the With methods that need a reconciler of For, set these.
	mgr        ctrl.Manager // nil if New made the reconciler
	options    controller.Options
	predicates []predicate.Predicate
	needsFor   string // the last method called that needs a reconciler of For

	prepareOnce sync.Once
	prepareErr  error
	watching    atomic.Bool // SetupWithBuilder has added the watches
}

var _ ctrlreconcile.Reconciler = &Reconciler[client.Object]{}

// New returns a reconciler without a manager, for a unit test or for a builder of your own. With a builder,
// call [Reconciler.SetupWithBuilder]. In all other cases use [For].
//
// T is a pointer to the API type, which must be in the scheme of the client. A mistake in the steps or options is an
// error of SetupWithBuilder and of every pass.
func New[T client.Object](c client.Client, steps ...NamedStep[T]) *Reconciler[T] {
	r := &Reconciler[T]{engine: engine{client: c, turns: turns.Default}, steps: steps}
	r.receivers.New = func() any { return r.empty() }
	return r.WithClock(clock.RealClock{})
}

// Reconcile runs one pass. It returns an error only for a mistake in the setup. A mistake in the reconciler itself, such as two steps with
// the same name, is a controller-runtime TerminalError, because a retry does not help. A kind without the status subresource is an error
// that controller-runtime retries, because the CustomResourceDefinition may be corrected. Errors of steps are logged, shown in the
// conditions, and retried after the returned delay.
func (r *Reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.prepare(); err != nil {
		return ctrl.Result{}, ctrlreconcile.TerminalError(err)
	}
	if controller.ReconcileIDFromContext(ctx) != "" && !r.watching.Load() {
		return ctrl.Result{}, ctrlreconcile.TerminalError(errNotWatching)
	}
	p := &pass{engine: &r.engine, object: passObject{engine: &r.engine, name: req.NamespacedName}}
	p.handle.pass = p
	run := p.run
	if r.tracer.Tracer != nil {
		run = p.runTraced
	}
	result := run(requestlog.InContext(ctx))
	if p.mistake != nil {
		return ctrl.Result{}, p.mistake
	}
	return result, nil
}

var errNotWatching = errors.New("the steps' watches are not set up: call SetupWithBuilder before the builder's Complete, or use For")

// prepare checks the type, the steps and the options, and sets the fields of the engine. It returns the first mistake that it finds.
func (r *Reconciler[T]) prepare() error {
	r.prepareOnce.Do(func() { r.prepareErr = r.prepareFirst() })
	return r.prepareErr
}

func (r *Reconciler[T]) prepareFirst() error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%s: give a pointer to an API type", t)
	}
	r.typ = t.Elem()
	if err := validateSteps(r.steps); err != nil {
		return fmt.Errorf("reconciler of %s: %w", r.typ, err)
	}
	if r.mgr == nil && r.needsFor != "" {
		return fmt.Errorf("reconciler of %s: %s needs a reconciler made by For: call the method of the builder instead", r.typ, r.needsFor)
	}
	var err error
	if r.retries, err = r.retries.complete(); err != nil {
		return fmt.Errorf("reconciler of %s: %w", r.typ, err)
	}
	if err = r.turns.Validate(); err != nil {
		return fmt.Errorf("reconciler of %s: %w", r.typ, err)
	}
	if r.options.RateLimiter != nil {
		return fmt.Errorf("reconciler of %s: WithOptions: a RateLimiter would never be asked, since a pass returns a delay and no error: set the delays with WithRetries", r.typ)
	}
	if r.kind, err = apiutil.GVKForObject(r.empty(), r.client.Scheme()); err != nil {
		return fmt.Errorf("kind of %s: %w: add its types to the scheme", r.typ, err)
	}
	r.fieldOwner = fieldmanager.For(r.kind)
	for r.settlers < len(r.steps) && r.steps[r.settlers].canSettle() {
		r.settlers++
	}
	if err := r.prepareStatus(); err != nil {
		return err
	}
	return r.prepareClient()
}

func (r *Reconciler[T]) prepareStatus() error {
	if r.withoutStatus {
		r.status = status.None
		for i := range r.steps {
			if s := &r.steps[i]; s.condition != "" {
				return fmt.Errorf("step %q reports the condition %q, but WithoutStatus says that the status is not ours", s.name, s.condition)
			} else if types := s.conditionTypes(); len(types) > 0 {
				return fmt.Errorf("step %q sets the condition %q, but WithoutStatus says that the status is not ours", s.name, types[0])
			}
		}
		return nil
	}
	binder := r.binder
	if binder == nil {
		binder = conditions.Standard().WithClock(r.clock.Now)
	}
	var history func(client.Object) conditions.List
	if r.isHistory = r.history != nil; r.isHistory {
		history = func(obj client.Object) conditions.List { return r.history(obj.(T)) }
	}
	var err error
	if r.status, err = status.New(r.typ, binder, history); err != nil || history != nil {
		return err
	}
	if _, err := r.status.Conditions(r.empty()); err != nil {
		return fmt.Errorf("status of %s: %w: pass an adapter to WithConditions, or call WithoutStatus if the status is not yours", r.kind.Kind, err)
	}
	return nil
}

func (r *Reconciler[T]) prepareClient() (err error) {
	watchedKinds := []client.Object{r.empty()}
	for i := range r.steps {
		watchedKinds = append(watchedKinds, r.steps[i].watched()...)
		r.passSteps = append(r.passSteps, r.steps[i].forPass())
		if name := r.steps[i].finalizer; name != "" {
			r.finalizers = append(r.finalizers, name)
			r.formerFinalizers = append(r.formerFinalizers, r.steps[i].formerFinalizers...)
		}
	}
	if r.stepClient, err = newStepClient(r.client, watchedKinds, r.references()); err != nil {
		return err
	}
	r.prepareBuilders()
	return nil
}

// prepareBuilders stores which steps build which children, and which objects are reconciled. The filter and the
// predicates decide about the objects. If the user has built the controller, the predicates are not known, so Selects
// returns true only if there is a filter.
func (r *Reconciler[T]) prepareBuilders() {
	r.builders.Kind, r.builders.Client = r.kind, r.stepClient
	r.builders.Selects = func(obj client.Object) bool {
		_, ok := obj.(T)
		return ok && (r.mgr != nil || r.filter != nil) && (r.filter == nil || r.filter(obj)) && !slices.ContainsFunc(r.predicates, func(p predicate.Predicate) bool {
			return !p.Create(event.CreateEvent{Object: obj})
		})
	}
	for i := range r.steps {
		s := builders.Step{Name: r.steps[i].name}
		if r.steps[i].canSettle() { // a type that embeds the step may or may not call it
			s.Builds = r.steps[i].hooks.Builds
		}
		r.builders.Steps = append(r.builders.Steps, s)
	}
}

// references returns the objects that the steps reference.
func (r *Reconciler[T]) references() (all []references.Reference) {
	for i := range r.steps {
		all = append(all, r.steps[i].references...)
	}
	return all
}
