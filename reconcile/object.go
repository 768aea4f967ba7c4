package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// passObject is the object of a pass.
type passObject struct {
	engine *engine
	name   types.NamespacedName
	before client.Object // the object as it was read or last written; it may be shared with the cache, and is never changed
	obj    client.Object // the copy that the steps work on
	cached string        // the resource version that was read from the cache; empty if our own last write is newer
	fresh  freshness
}

// mayLeaveOutSteps reports whether steps without work may be left out of the pass: the object is neither being deleted
// nor paused, and has all finalizers.
func (o *passObject) mayLeaveOutSteps() bool {
	if o.before.GetDeletionTimestamp() != nil {
		return false
	}
	if state := record.PauseOf(o.before); state.Paused && state.At(o.engine.clock.Now()).Paused {
		return false
	}
	have := o.before.GetFinalizers()
	return !slices.ContainsFunc(o.engine.finalizers, func(needed string) bool { return !slices.Contains(have, needed) })
}

// owns reports whether obj is the copy that the steps of this pass get.
func (o *passObject) owns(obj client.Object) bool { return o.obj == obj }

// rebase continues the pass after our own write to the metadata of the object. obj has the answer to that write. The
// write carried the resource version, so nobody else has written in between. before gets copies of the metadata,
// because steps may change the metadata of obj in memory.
func (o *passObject) rebase() {
	before := o.engine.copyOf(o.before)
	if o.obj.GetResourceVersion() != before.GetResourceVersion() {
		o.fresh = max(o.fresh, current)
	}
	before.SetResourceVersion(o.obj.GetResourceVersion())
	before.SetFinalizers(slices.Clone(o.obj.GetFinalizers()))
	before.SetAnnotations(maps.Clone(o.obj.GetAnnotations()))
	before.SetLabels(maps.Clone(o.obj.GetLabels()))
	before.SetOwnerReferences(slices.Clone(o.obj.GetOwnerReferences()))
	o.before = before
	o.engine.writes.Record(before)
}

// freshness says whether the version of the object that a pass works on is known to be current. During a pass it can
// only change to a later value.
type freshness int

const (
	// fromCache: the object was read from the cache. If the process has just started, it may be an old version.
	fromCache freshness = iota
	// current: the version is not older than the start of this process. A write with the resource version, or a read
	// from the API server, has confirmed it.
	current
	// uncertain: a checkpoint or a confirmation failed, and the error was not a conflict. It is not known whether the
	// checkpoint was stored. From now on the status is written only with the resource version, so that it cannot
	// overwrite the change of another writer.
	uncertain
	// outdated: there was a conflict. This pass does not write the status, because the write would meet the same conflict.
	outdated
)

// after returns the freshness after a write with the resource version, or a read from the API server. err is the
// result of that request. If a checkpoint failed or a conflict occurred earlier in the pass, a later success does not
// change the freshness.
func (f freshness) after(err error) freshness {
	switch {
	case err == nil:
		return max(f, current)
	case isConflict(err):
		return outdated
	default:
		return max(f, uncertain)
	}
}

// confirm makes sure that the version of the object is not older than the start of this process. It sends a request,
// unless the process has already confirmed the object. If the object has been changed or deleted since it was read,
// confirm returns a conflict.
func (o *passObject) confirm(ctx context.Context) error {
	uid := o.before.GetUID()
	if o.engine.memory.isCurrent(o.name, uid) {
		return nil
	}
	if o.fresh != current {
		err := o.compareLive(ctx)
		o.fresh = o.fresh.after(err)
		if err != nil {
			return err
		}
	}
	o.engine.memory.setCurrent(o.name, uid)
	return nil
}

// compareLive reads the object from the API server. If the object has another version or does not exist, compareLive
// returns a conflict.
func (o *passObject) compareLive(ctx context.Context) error {
	live, err := o.readLive(ctx)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read %s %s, to make sure that it has not changed: %w", o.engine.kind.Kind, o.name, err)
	case err != nil, live.GetUID() != o.before.GetUID(), live.GetResourceVersion() != o.before.GetResourceVersion():
		return o.conflict()
	}
	return nil
}

// conflict returns the error for a change of the object that the cache does not show yet.
func (o *passObject) conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Group: o.engine.kind.Group, Resource: o.engine.kind.Kind}, o.name.Name,
		errors.New("it was changed or deleted, and the cache does not show that yet"))
}

// readLive reads the object from the API server. It may read only the metadata.
func (o *passObject) readLive(ctx context.Context) (client.Object, error) {
	if o.engine.stepClient.reader.Live == nil { // without a manager, the client reads unstructured objects from the API server
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(o.engine.kind)
		return u, o.engine.client.Get(ctx, o.name, u)
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.engine.kind)
	return m, o.engine.stepClient.reader.Live.Get(ctx, o.name, m)
}
