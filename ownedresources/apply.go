package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

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
	none := &childOptions{}
	if err := a.validate(&ref, desired); err != nil {
		return nil, err
	}
	results := make([]Result, len(desired))
	var errs []error
	for i, obj := range desired {
		results[i], err = a.apply(ctx, &ref, obj, none)
		errs = append(errs, err)
	}
	return results, errors.Join(errs...)
}

// applier applies objects, and remembers what spares requests.
type applier struct {
	kinds   *kinds
	live    client.Reader // past the cache; nil without a manager
	writes  *ownwrites.Writes
	settled *settled
	guard   *guard
	// recorder is nil without a manager.
	recorder events.EventRecorder
	scopes   sync.Map // *kind → bool: whether it is namespaced
	// recreated says for which change an object was last deleted, to create it anew.
	recreated sync.Map // recreation → sum
}

func newApplier() *applier {
	return &applier{kinds: builtInKinds, writes: ownwrites.New(clock.RealClock{}), settled: newSettled(), guard: newGuard(clock.RealClock{})}
}

var withoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

func (a *applier) apply(ctx context.Context, owner *owner, obj client.Object, o *childOptions) (Result, error) {
	w, err := a.want(owner, obj, o)
	if err != nil {
		return Result{}, err
	}
	live := w.kind.empty()
	name := client.ObjectKeyFromObject(obj)
	switch err := owner.client.Get(ctx, name, live, withoutCopy); {
	case err == nil:
		return a.update(ctx, w, a.writes.Newer(live))
	case client.IgnoreNotFound(err) != nil:
		return Result{}, fmt.Errorf("read %s: %w", &w, err)
	}
	if unseen := a.writes.Unseen(live, name); unseen != nil {
		return a.update(ctx, w, unseen)
	}
	return a.create(ctx, w)
}

// want makes an object ready to be compared and sent.
func (a *applier) want(owner *owner, obj client.Object, o *childOptions) (wanted, error) {
	k, err := a.kinds.of(obj, owner.client.Scheme())
	if err != nil {
		return wanted{}, err
	}
	full := withData(obj)
	if o.unset != nil {
		full = withData(obj.DeepCopyObject().(client.Object))
		o.unset(obj)
	}
	obj = withData(obj)
	sum, err := k.sum(obj)
	if err != nil {
		return wanted{}, fmt.Errorf("%s: %w", k.describe(obj), err)
	}
	return wanted{kind: k, object: obj, full: full, sum: sum, owner: owner, options: o}, nil
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
func (w *wanted) marked(m mark) client.Object {
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
