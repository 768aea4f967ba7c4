package reconcile

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/references"
)

// Watch is a kind that a step reads and watches. Make one with [Watching].
type Watch struct {
	object     client.Object
	mapTo      func(ctx context.Context, r client.Reader, obj client.Object) []ctrl.Request
	predicates []predicate.Predicate
}

// Watching declares that the step reads objects of a kind, and watches them: for each event the requests that mapTo returns
// are enqueued. For an update mapTo is called twice, with the old and with the new object, and all requests are enqueued.
//
// mapTo may read other objects through r: of the reconciler's own kind, and of the kinds that the steps declare. Other
// kinds are refused, as by the client of a step. It must change neither obj nor what it reads.
//
// obj is an empty object, such as &corev1.Pod{}. mapTo and the predicates get objects of its type, whatever is watched.
//
// The cache has one informer for each form of a kind: typed objects, unstructured ones, and metadata
// (*metav1.PartialObjectMetadata with the kind). One informer may be behind another. So all steps of a reconciler watch
// a kind by one informer: typed objects if any step declares or builds these, or else unstructured ones if any step
// declares these, or else metadata. A step reads metadata and objects of the watched form from that informer. It reads
// objects of another form or version of the kind from the API server, with one request each. So no read is older than
// the event that triggered the pass. If only metadata is watched, lists of whole objects are refused.
//
// Predicates limit the events: an event has to pass all of them. Package predicates has some. A predicate that selects
// by label must look at ObjectOld as well, or the update that removes the label is dropped.
func Watching[O client.Object](
	obj O, mapTo func(ctx context.Context, r client.Reader, obj O) []ctrl.Request, predicates ...predicate.Predicate,
) Watch {
	return Watch{object: obj, predicates: predicates, mapTo: func(ctx context.Context, r client.Reader, changed client.Object) []ctrl.Request {
		typed, ok := changed.(O)
		if !ok {
			return nil
		}
		return mapTo(ctx, r, typed)
	}}
}

// handler returns the event handler, whose mapping function reads through r.
func (w *Watch) handler(r client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		return w.mapTo(ctx, r, obj)
	})
}

func (w *Watch) setup(b *ctrl.Builder, c *stepClient) error {
	return c.reader.Forms.Watch(b, w.object, w.handler(c), w.predicates...)
}

// Reads declares which objects of a kind, such as a Secret with a password, a T references without owning them. A
// change of such an object, its deletion and its re-creation trigger a reconcile of the T.
//
// obj is an empty object, such as &corev1.Secret{}. names returns the names of the objects that a T references. An
// empty namespace means the namespace of the T. names must only read, and always return the same names for the same T.
//
// The cache holds only the metadata of these objects, and the client of the step reads a whole object from the API server,
// with one request. To save it, read the object's *metav1.PartialObjectMetadata, which comes from the cache, compare its
// [VersionOf] with the version that you recorded, and read the whole object only if it differs. Lists of whole objects are
// refused. None of this holds if a step also declares the kind by [NamedStep.ReadsCached], or whole objects of it by [Watching], or
// builds objects of it: then the cache holds the whole objects, and they and their metadata are read there.
//
// What a step reads is never older than the event that triggered the pass: see [Watching].
//
// The operator needs the verbs get, list and watch on the kind. RBAC cannot tell a watch of metadata from a watch of whole
// objects: where that matters, limit the permission by namespace.
func (n NamedStep[T]) Reads(obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	return n.referencing(false, obj, names)
}

// ReadsCached is [NamedStep.Reads] for objects that the steps read in every pass and that contain no secrets, such as a
// Deployment whose status is observed. The cache holds the whole objects, and the client of the step reads and lists them
// there.
func (n NamedStep[T]) ReadsCached(obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	return n.referencing(true, obj, names)
}

func (n NamedStep[T]) referencing(cached bool, obj client.Object, names func(T) []types.NamespacedName) NamedStep[T] {
	n.references = append(slices.Clip(n.references), references.New(cached, obj, names))
	return n
}

// VersionOf returns a string that changes whenever the object is changed, or deleted and created again: its UID and its
// resource version.
func VersionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// RequestedAnnotation is the annotation that requests a pass now. Its value is any text, such as the time. Each new value
// triggers one pass, also if the predicates of [Reconciler.WithPredicates] drop changes of annotations. All steps run in that
// pass, and [Requested] is true for them. An empty value requests nothing. While an object is paused, the request waits.
//
// If the status has a string field with the JSON name lastHandledReconcileAt, the pass sets it to the value when the
// request was handled, whatever the outcome of the steps. Flux has a field with this name and this meaning, for its
// annotation reconcile.fluxcd.io/requestedAt. If a step lost a race or returned [KeepConditions], a later pass sets the
// field. Without such a field nothing is acknowledged, and a process that has just started handles the value once more.
const RequestedAnnotation = record.Requested

// Requested reports whether a person has requested this pass by [RequestedAnnotation]. Call it in a step, with the context
// of the step. A step that compares something outside of the cluster only at intervals, or after a change, should compare it
// now. Requested stays true in later passes until the step has succeeded or waits. Outside of a pass it is false.
func Requested(ctx context.Context) bool {
	requested := false
	handleFrom(ctx).use(func(p *pass) { requested = p.requested() })
	return requested
}

// asked is a request by [RequestedAnnotation].
type asked struct {
	uid   types.UID
	value string // empty if nothing is requested
}

// readRequest reads the request of the object. It reports whether a step has yet to handle it.
func (p *pass) readRequest() (open bool) {
	value := p.before.GetAnnotations()[RequestedAnnotation]
	if value == "" {
		return false
	}
	p.asked = asked{p.before.GetUID(), value}
	return p.memory.ask(p.name, p.asked, p.status.Handled(p.before) == value, len(p.passSteps))
}

// requested reports whether the step that runs has yet to handle the request.
func (p *pass) requested() bool {
	return p.asked.value != "" && p.memory.isUnanswered(p.name, p.asked, p.passSteps[p.running].name)
}

// answer remembers which steps have handled the request.
func (p *pass) answer(outcomes []outcome) {
	if p.asked.value == "" {
		return
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.state == succeeded || o.state == waiting {
			p.memory.setAnswered(p.name, p.asked, o.step.name)
		}
	}
}

// orAsked returns a predicate that also passes updates by which a person asks for something: updates that change
// [RequestedAnnotation], the interval of observations of package external, or the pause. p still selects the objects: it has to pass the creation of the new object. A
// predicate that looks for changes passes every creation.
func orAsked(p predicate.Predicate) predicate.Predicate {
	asks := func(before, after client.Object) bool {
		for _, key := range []string{RequestedAnnotation, record.ObserveInterval} {
			if before.GetAnnotations()[key] != after.GetAnnotations()[key] {
				return true
			}
		}
		return record.PauseOf(before) != record.PauseOf(after)
	}
	return predicate.Funcs{
		CreateFunc: p.Create,
		UpdateFunc: func(e event.UpdateEvent) bool {
			return p.Update(e) || asks(e.ObjectOld, e.ObjectNew) && p.Create(event.CreateEvent{Object: e.ObjectNew})
		},
		DeleteFunc:  p.Delete,
		GenericFunc: p.Generic,
	}
}
