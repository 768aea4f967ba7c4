package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Watch declares a kind that a step reads and watches. Make a Watch with [Watching].
type Watch struct {
	object     client.Object
	mapTo      func(ctx context.Context, r client.Reader, obj client.Object) []ctrl.Request
	predicates []predicate.Predicate
}

// Watching declares that the step reads and watches objects of a kind. For each event, mapTo returns the requests to
// enqueue. For an update mapTo is called twice, with the old and with the new object, and all requests are enqueued.
//
// mapTo may read other objects through r: objects of the reconciler's own kind, and of the kinds that the steps
// declare. As with the client of a step, reads of other kinds are refused. mapTo must change neither obj nor what it
// reads.
//
// obj is an empty object, such as &corev1.Pod{}. mapTo and the predicates get objects of its type, whatever form of the
// kind is watched.
//
// The cache has one informer for each form of a kind: typed objects, unstructured objects, and metadata
// (*metav1.PartialObjectMetadata with the kind). One informer may be behind another. So all steps of a reconciler watch
// a kind by one informer. If any step declares or builds typed objects, it is the informer of typed objects. Otherwise,
// if any step declares unstructured objects, it is the informer of unstructured objects. Otherwise it is the
// informer of metadata.
//
// A step reads metadata and objects of the watched form from that informer. It reads objects of another form or
// version of the kind from the API server, with one request each. So no read is older than the event that triggered the
// pass. If only metadata is watched, lists of whole objects are refused.
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
