package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/ownwrites"
)

// Reconciler runs passes over objects of type T. It is a plain controller-runtime reconciler.
type Reconciler[T client.Object] struct {
	client        client.Client
	steps         []NamedStep[T]
	stepClient    *declaredClient
	kind          schema.GroupVersionKind
	typ           reflect.Type // the struct, not the pointer
	status        *statusType
	fieldManager  client.FieldOwner
	writes        *ownwrites.Writes
	clock         clock.PassiveClock
	backoff       backoff
	logged        logged
	cleaned       sync.Map             // NamespacedName → UID, of what is deleted and may still be in the cache
	confirmed     sync.Map             // NamespacedName → UID, of what this process found to be as the cache shows it
	metrics       *metrics             // nil without a manager
	recorder      events.EventRecorder // nil without a manager
	finalizers    []string
	ours          func(T) bool            // nil: all
	history       func(T) conditions.List // nil: conditions are a map
	watching      atomic.Bool
	ownConditions bool
	checked       sync.Once
	err           error // given by the first pass, and by Complete
}

var _ ctrlreconcile.Reconciler = &Reconciler[client.Object]{}

// New makes a reconciler for a unit test, or for a builder of your own, which then needs
// [Reconciler.SetupWithBuilder]. Otherwise use [For]. T is a pointer to the API type, which
// must be in the client's scheme. What is wrong with the steps is the first pass's error.
func New[T client.Object](c client.Client, steps ...NamedStep[T]) *Reconciler[T] {
	r := &Reconciler[T]{client: c, steps: steps, backoff: newBackoff()}
	r.err = r.init()
	return r.WithClock(clock.RealClock{})
}

// WithClock lets a test hold the clock, by which conditions get their times and pauses end. Call
// it before the first pass.
func (r *Reconciler[T]) WithClock(c clock.PassiveClock) *Reconciler[T] {
	r.clock, r.writes = c, ownwrites.New(c)
	if r.status != nil && !r.ownConditions {
		r.status.binder = conditions.Standard().WithClock(c.Now)
	}
	return r
}

// WithConditions is for a kind whose conditions are structs of its own: [conditions.NewEditor] with
// their adapter. It has its own clock. Call it before the first pass.
func (r *Reconciler[T]) WithConditions(binder conditions.Binder) *Reconciler[T] {
	r.ownConditions = true
	if r.status != nil {
		r.status.binder = binder
	}
	return r
}

// check says what is wrong with the reconciler itself.
func (r *Reconciler[T]) check() error {
	r.checked.Do(func() {
		if r.err != nil || r.history != nil {
			return
		}
		if _, err := r.status.list(reflect.New(r.typ)); err != nil {
			r.err = fmt.Errorf("status of %s: %w: give WithConditions an adapter, or say WithoutStatus if the status is not yours", r.kind.Kind, err)
		}
	})
	return r.err
}

func (r *Reconciler[T]) init() error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%s: give a pointer to an API type", t)
	}
	r.typ = t.Elem()
	if err := validateSteps(r.steps); err != nil {
		return fmt.Errorf("reconciler of %s: %w", r.typ, err)
	}
	gvk, err := apiutil.GVKForObject(r.empty(), r.client.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %s: %w: add its types to the scheme", r.typ, err)
	}
	r.kind, r.fieldManager = gvk, fieldmanager.For(gvk)
	if r.status, err = newStatusType(r.typ, conditions.Standard()); err != nil {
		return err
	}
	kinds := []client.Object{r.empty()}
	var referenced []client.Object
	for i := range r.steps {
		kinds = append(kinds, r.steps[i].watched()...)
		for _, ref := range r.steps[i].references {
			if ref.cached {
				kinds = append(kinds, ref.object)
			} else {
				referenced = append(referenced, ref.object)
			}
		}
		if name := r.steps[i].finalizer; name != "" {
			r.finalizers = append(r.finalizers, name)
		}
	}
	r.stepClient, err = newDeclaredClient(r.client, kinds, referenced)
	return err
}

// WithoutStatus is for a kind whose status belongs to somebody else: the pass writes none, and
// shows outcomes by log and events alone. Steps must report no conditions. Call it before the
// first pass.
func (r *Reconciler[T]) WithoutStatus() *Reconciler[T] {
	r.status = &statusType{status: -1, binder: conditions.Standard()}
	for i := range r.steps {
		if s := &r.steps[i]; s.condition != "" && r.err == nil {
			r.err = fmt.Errorf("step %q reports the condition %q, and the status is not ours", s.name, s.condition)
		}
	}
	return r
}

func (r *Reconciler[T]) empty() T { return reflect.New(r.typ).Interface().(T) }

// SetupWithBuilder adds the steps' watches to a builder of your own. The watch of the object
// itself (For) is the builder's business.
func (r *Reconciler[T]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := r.check(); err != nil {
		return err
	}
	for i := range r.steps {
		if err := r.steps[i].setupWithBuilder(mgr, b, r.stepClient); err != nil {
			return err
		}
	}
	if err := r.watchReferences(mgr, b); err != nil {
		return err
	}
	r.stepClient.live = mgr.GetAPIReader()
	if r.recorder == nil {
		r.recorder = mgr.GetEventRecorder(fieldmanager.Reporter(r.kind))
	}
	var err error
	if r.metrics, err = newMetrics(ctrlmetrics.Registry, r.kind.Kind); err != nil {
		return err
	}
	r.watching.Store(true)
	return nil
}

var errNotWatching = errors.New("the steps' watches are not set up: call SetupWithBuilder before the builder's Complete, or use For")

// Reconcile runs one pass. It gives an error only for what no pass can heal.
func (r *Reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.check(); err != nil {
		return ctrl.Result{}, ctrlreconcile.TerminalError(err)
	}
	if controller.ReconcileIDFromContext(ctx) != "" && !r.watching.Load() {
		return ctrl.Result{}, ctrlreconcile.TerminalError(errNotWatching)
	}
	p := &pass[T]{Reconciler: r, name: req.NamespacedName}
	return p.run(ctx), nil
}
