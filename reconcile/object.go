package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// passObject is the object of a pass.
type passObject[T client.Object] struct {
	*Reconciler[T]
	name   types.NamespacedName
	before T      // the object as it was read or last written; it may be the cache's own, and is never changed
	obj    T      // the copy that the steps work on
	cached string // the resource version of the object that was read from the cache; empty if our own last write is newer
	fresh  freshness
}

// copyOf returns the copy that the steps work on. It lacks the managed fields, which no step needs: copying them would take
// a third of the time.
func (r *Reconciler[T]) copyOf(obj T) T {
	lean := r.receivers.Get().(T)
	defer r.release(lean)
	reflect.ValueOf(lean).Elem().Set(reflect.ValueOf(obj).Elem())
	lean.SetManagedFields(nil)
	return lean.DeepCopyObject().(T)
}

// release puts the object that a pass has read into back into the pool, without what the cache has put into it. With a
// filter the object is not used again: the filter, a function of the user, may have kept it.
func (r *Reconciler[T]) release(receiver T) {
	if r.filter != nil {
		return
	}
	reflect.ValueOf(receiver).Elem().SetZero()
	r.receivers.Put(receiver)
}

// mayLeaveOutSteps reports whether the pass is to run the steps, and nothing else has to be done before.
func (o *passObject[T]) mayLeaveOutSteps() bool {
	if o.before.GetDeletionTimestamp() != nil {
		return false
	}
	if state := record.PauseOf(o.before); state.Paused && state.At(o.clock.Now()).Paused {
		return false
	}
	have := o.before.GetFinalizers()
	return !slices.ContainsFunc(o.finalizers, func(needed string) bool { return !slices.Contains(have, needed) })
}

// owns reports whether obj is the object of this pass.
func (o *passObject[T]) owns(obj client.Object) bool { return client.Object(o.obj) == obj }

// rebase continues the pass from our own write to the metadata of the object, whose answer is in obj. The write had a
// lock, so nobody else has written in between. before gets clones, since steps may change the metadata of obj in
// memory.
func (o *passObject[T]) rebase() {
	before := o.copyOf(o.before)
	if o.obj.GetResourceVersion() != before.GetResourceVersion() {
		o.fresh = max(o.fresh, current)
	}
	before.SetResourceVersion(o.obj.GetResourceVersion())
	before.SetFinalizers(slices.Clone(o.obj.GetFinalizers()))
	before.SetAnnotations(maps.Clone(o.obj.GetAnnotations()))
	before.SetLabels(maps.Clone(o.obj.GetLabels()))
	before.SetOwnerReferences(slices.Clone(o.obj.GetOwnerReferences()))
	o.before = before
	o.writes.Record(before)
}

// Rebase implements [passcontext.Pass].
func (o *passObject[T]) Rebase(obj client.Object) {
	if o.owns(obj) {
		o.rebase()
	}
}

// freshness is what a pass has found out about the version of the object that it works on. It only rises during a pass.
type freshness int

const (
	// fromCache: nothing is known. The cache of a process that has just started may show a version of long ago.
	fromCache freshness = iota
	// current: the version is not older than this process, because a write with a lock or a read from the API server
	// said so.
	current
	// uncertain: a checkpoint or a confirmation failed, for another reason than a conflict. It is not known whether the
	// checkpoint was stored. From now on the status is written only with a lock, so that it cannot overwrite the change
	// of another writer.
	uncertain
	// outdated: there was a conflict. The status is not written in this pass, since that would meet the same conflict.
	outdated
)

// after returns the freshness after a write with a lock, or a read from the API server, that has returned err. A success
// does not make up for a failed checkpoint or a conflict before it.
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

// ConfirmCurrent implements [passcontext.Pass]. It is [Checkpoint] without a record in the status, for packages that do in
// the cluster what cannot be undone.
func (o *passObject[T]) ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error) {
	if !o.owns(obj) {
		return false, nil
	}
	return true, o.confirm(ctx)
}

// confirm makes sure that the object is not older than this process. It sends a request, unless the process has confirmed
// the object before. If the object has been changed or deleted since it was read, confirm returns the conflict that a write
// with a lock would have met.
func (o *passObject[T]) confirm(ctx context.Context) error {
	uid := o.before.GetUID()
	if o.memory.isCurrent(o.name, uid) {
		return nil
	}
	if o.fresh != current {
		err := o.compareLive(ctx)
		o.fresh = o.fresh.after(err)
		if err != nil {
			return err
		}
	}
	o.memory.setCurrent(o.name, uid)
	return nil
}

// compareLive reads the object from the API server, and returns a conflict if it is another version or gone.
func (o *passObject[T]) compareLive(ctx context.Context) error {
	live, err := o.readLive(ctx)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read %s %s, to make sure that it has not changed: %w", o.kind.Kind, o.name, err)
	case err != nil, live.GetUID() != o.before.GetUID(), live.GetResourceVersion() != o.before.GetResourceVersion():
		return o.conflict()
	}
	return nil
}

// conflict returns a conflict with a change that the cache does not show yet.
func (o *passObject[T]) conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Group: o.kind.Group, Resource: o.kind.Kind}, o.name.Name,
		errors.New("it was changed or deleted, and the cache does not show that yet"))
}

// readLive reads the object, at least its metadata, from the API server.
func (o *passObject[T]) readLive(ctx context.Context) (client.Object, error) {
	if o.stepClient.reader.Live == nil { // not set up with a manager; a manager's client does not cache unstructured objects
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(o.kind)
		return u, o.client.Get(ctx, o.name, u)
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.kind)
	return m, o.stepClient.reader.Live.Get(ctx, o.name, m)
}

// Detach implements [passcontext.Pass].
func (p *pass[T]) Detach(ctx context.Context) (ofFunction context.Context, end func()) {
	d := &detached{pass: p}
	return passcontext.NewContext(ctx, d), func() {
		d.end()
		p.obj = p.copyOf(p.before)
		p.obj.GetObjectKind().SetGroupVersionKind(p.kind)
	}
}

// detached is the pass as a function sees it that may never return. After the end it does nothing.
type detached struct {
	mu   sync.Mutex
	pass currentPass // nil after the end
}

var _ currentPass = &detached{}

var errDetached = errors.New("the pass has ended before the function returned")

// end takes the pass away. If the function uses it right now, end waits for that.
func (d *detached) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pass = nil
}

// use calls do with the pass, unless it was taken away. It reports whether it did.
func (d *detached) use(do func(p currentPass)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pass == nil {
		return false
	}
	do(d.pass)
	return true
}

func (d *detached) checkpoint(ctx context.Context) (err error) {
	// What a client does with the context must not find the lock.
	if !d.use(func(p currentPass) { err = p.checkpoint(passcontext.NewContext(ctx, p)) }) {
		return errDetached
	}
	return err
}

// ConfirmCurrent implements [passcontext.Pass].
func (d *detached) ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error) {
	if !d.use(func(p currentPass) { known, err = p.ConfirmCurrent(passcontext.NewContext(ctx, p), obj) }) {
		return true, errDetached
	}
	return known, err
}

func (d *detached) requested() (is bool) {
	d.use(func(p currentPass) { is = p.requested() })
	return is
}

func (d *detached) owns(obj client.Object) (is bool) {
	d.use(func(p currentPass) { is = p.owns(obj) })
	return is
}

// AsCached implements [passcontext.Pass].
func (d *detached) AsCached(obj client.Object) (is bool) {
	d.use(func(p currentPass) { is = p.AsCached(obj) })
	return is
}

// OtherBuilderOf implements [passcontext.Pass].
func (d *detached) OtherBuilderOf(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (running, other string) {
	d.use(func(p currentPass) { running, other = p.OtherBuilderOf(ctx, kind, name) })
	return running, other
}

// Spend implements [passcontext.Pass].
func (d *detached) Spend(by passcontext.Spender) (err error) {
	if !d.use(func(p currentPass) { err = p.Spend(by) }) {
		return errDetached
	}
	return err
}

// AnnotationKeptBy implements [passcontext.Pass].
func (d *detached) AnnotationKeptBy(key string) (step string, kept bool) {
	d.use(func(p currentPass) { step, kept = p.AnnotationKeptBy(key) })
	return step, kept
}

// Detach implements [passcontext.Pass].
func (d *detached) Detach(ctx context.Context) (ofFunction context.Context, end func()) {
	return passcontext.NewContext(ctx, d), d.end
}

// AfterSteps implements [passcontext.Pass].
func (d *detached) AfterSteps(do func(ctx context.Context) error) {
	d.use(func(p currentPass) { p.AfterSteps(do) })
}

// KeepAnnotation implements [passcontext.Pass].
func (d *detached) KeepAnnotation(key, step string) {
	d.use(func(p currentPass) { p.KeepAnnotation(key, step) })
}

// SetCondition implements [passcontext.Pass].
func (d *detached) SetCondition(condition metav1.Condition) {
	d.use(func(p currentPass) { p.SetCondition(condition) })
}

// Rebase implements [passcontext.Pass].
func (d *detached) Rebase(obj client.Object) { d.use(func(p currentPass) { p.Rebase(obj) }) }

func (d *detached) rebase() { d.use(func(p currentPass) { p.rebase() }) }

func (d *detached) emit(regarding client.Object, eventType, reason, note string) {
	d.use(func(p currentPass) { p.emit(regarding, eventType, reason, note) })
}
