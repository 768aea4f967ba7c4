package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/ownwrites"
)

// Operation says what a call did to an object.
type Operation string

const (
	// Unchanged: the live object was as wanted, and no request was sent.
	Unchanged Operation = "unchanged"
	// Created: the object was absent and has been created.
	Created Operation = "created"
	// Applied: the live object differed and has been written.
	Applied Operation = "applied"
)

// Result is one object after it has been applied.
type Result struct {
	// Object is the live object. It may be the cache's own: read it, never write to it.
	Object client.Object
	// Operation is what was done.
	Operation Operation
}

// Apply makes the API server hold the desired objects, owned by owner. It gives one
// result an object, in their order; one that failed has a nil Object. An object's empty
// namespace becomes the owner's, in place.
//
// All objects are tried, whatever happens to the others. The error joins theirs: an
// [OwnershipError] or a [WaitingError] (errors.As), or the API server's own, to be told
// apart by k8s.io/apimachinery/pkg/api/errors. What is wrong with the call itself is
// reported before any request.
//
// Reads go to c, so with a manager's client to its cache; the kinds should be watched
// (controller-runtime's Owns). Apply keeps nothing between calls. [Ensure] does, and so
// spares requests while the cache is behind.
func Apply(ctx context.Context, c client.Client, owner client.Object, desired ...client.Object) ([]Result, error) {
	ref, err := newOwner(owner, c)
	if err != nil {
		return nil, err
	}
	a := newApplier()
	all, err := a.desire(&ref, desired)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(all))
	var errs []error
	for i, d := range all {
		results[i], err = a.applyAs(ctx, &ref, d.kind, d.object, d.options)
		errs = append(errs, err)
	}
	return results, errors.Join(errs...)
}

// applier applies objects, and remembers what spares requests.
type applier struct {
	kinds    *kinds
	live     client.Reader // past the cache; nil without a manager
	writes   *ownwrites.Writes
	metrics  *metrics
	settled  *settled
	guard    *guard
	verified *verified
	orphans  *orphans
	// recorder is nil without a manager.
	recorder events.EventRecorder
	scopes   sync.Map // *kind → bool: whether it is namespaced
	// recreated says for which change an object was last deleted, to create it anew.
	recreated recreated
}

func newApplier() *applier {
	m := newMetrics()
	return &applier{
		kinds: builtInKinds, writes: ownwrites.New(clock.RealClock{}), metrics: m,
		settled: newSettled(m), guard: newGuard(clock.RealClock{}, m), verified: newVerified(),
		orphans: newOrphans(clock.RealClock{}),
	}
}

var withoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

func (a *applier) apply(ctx context.Context, owner *owner, obj client.Object, o *childOptions) (Result, error) {
	k, err := a.kinds.of(obj, owner.client.Scheme())
	if err != nil {
		return Result{}, err
	}
	return a.applyAs(ctx, owner, k, obj, o)
}

func (a *applier) applyAs(ctx context.Context, owner *owner, k *kind, obj client.Object, o *childOptions) (Result, error) {
	object, full, err := k.sendable(obj, o)
	if err != nil {
		return Result{}, err
	}
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	encoded, err := k.plan.AppendJSON((*room)[:0], object)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", k.describe(object), err)
	}
	*room = encoded
	live, err := a.read(ctx, owner, k, object)
	if err != nil {
		return Result{}, err
	}
	if live != nil && a.verified.is(owner, live, encoded) {
		return Result{Object: live, Operation: Unchanged}, nil
	}
	w := wanted{kind: k, object: object, full: full, sum: sumOf(encoded), owner: owner, options: o}
	if live == nil {
		return a.create(ctx, w)
	}
	result, err := a.update(ctx, w, live)
	if err == nil && result.Operation == Unchanged {
		a.verified.set(owner, live, encoded)
	}
	return result, err
}

// read gives what the cache has, or what we wrote if that is newer; nil if there is nothing.
func (a *applier) read(ctx context.Context, owner *owner, k *kind, obj client.Object) (client.Object, error) {
	live, name := k.empty(), client.ObjectKeyFromObject(obj)
	err := owner.client.Get(ctx, name, live, withoutCopy)
	switch {
	case err == nil:
		return a.writes.Newer(live), nil
	case apierrors.IsNotFound(err):
		return a.writes.Unseen(live, name), nil
	}
	return nil, fmt.Errorf("read %s: %w", k.describe(obj), err)
}

// want makes an object ready to be compared and sent.
func (a *applier) want(owner *owner, obj client.Object, o *childOptions) (wanted, error) {
	k, err := a.kinds.of(obj, owner.client.Scheme())
	if err != nil {
		return wanted{}, err
	}
	object, full, err := k.sendable(obj, o)
	if err != nil {
		return wanted{}, err
	}
	sum, err := k.sum(object)
	if err != nil {
		return wanted{}, fmt.Errorf("%s: %w", k.describe(object), err)
	}
	return wanted{kind: k, object: object, full: full, sum: sum, owner: owner, options: o}, nil
}

// sendable gives the object as it is compared and sent, and with what is set at creation only.
func (k *kind) sendable(obj client.Object, o *childOptions) (object, full client.Object, err error) {
	if obj, err = withJSONValues(obj); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", k.describe(obj), err)
	}
	obj = withoutOurs(obj)
	if o.unset == nil {
		obj = withData(obj)
		return obj, obj, nil
	}
	full = withData(obj.DeepCopyObject().(client.Object))
	o.unset(obj)
	return withData(obj), full, nil
}

// wanted is one object on its way to the API server.
type wanted struct {
	kind    *kind
	object  client.Object
	full    client.Object // object, and what is set at creation only
	sum     sum
	owner   *owner
	options *childOptions
}

func (w *wanted) String() string { return w.kind.describe(w.object) }

// marked gives a copy that carries the controller reference and the mark.
func (w *wanted) marked(m lastApplied) client.Object {
	obj := w.object
	if m == created {
		obj = w.full
	}
	obj = obj.DeepCopyObject().(client.Object)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationApplied] = m.value(w.sum, setsReplicas(w.object))
	if w.owner.set != "" {
		annotations[AnnotationSet] = w.owner.set
	}
	obj.SetAnnotations(annotations)
	obj.SetOwnerReferences(append(foreignTo(w.owner, obj.GetOwnerReferences()), w.owner.reference))
	return obj
}

func foreignTo(o *owner, refs []metav1.OwnerReference) []metav1.OwnerReference {
	var kept []metav1.OwnerReference
	for _, ref := range refs {
		if ref.UID != o.reference.UID {
			kept = append(kept, ref)
		}
	}
	return kept
}

func isNil(obj client.Object) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
