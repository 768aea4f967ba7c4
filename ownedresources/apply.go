package ownedresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/ownwrites"
)

// Operation is what was done to an object, or what [Diff] found would be done.
type Operation string

const (
	// Unchanged: the live object is as desired. No request is sent.
	Unchanged Operation = "unchanged"
	// Created: the object was absent, and is created.
	Created Operation = "created"
	// Applied: the live object differs, and is applied.
	Applied Operation = "applied"
)

// Result is what [Apply] did to one object.
type Result struct {
	// Object is the live object. It may be the cache's own: read it, but do not modify it.
	Object client.Object
	// Operation is what was done.
	Operation Operation

	fromCache bool // Object is as the cache shows it, and not a later answer to a write of ours
}

// Apply creates or applies the desired objects, with owner as their controller. It sends no request for an object that
// is already as desired. An object without a namespace gets that of the owner, in place.
//
// Apply returns one result per object, in the same order. All objects are tried, whatever happens to the others. The result
// of an object that failed has a nil Object, except with a [*NotCachedError].
//
// The error joins the errors of all objects. Use errors.As to find an [*OwnershipError], a [*WaitingError] or a
// [*NotCachedError]. The errors of the API server are found by the functions of k8s.io/apimachinery/pkg/api/errors:
// IsConflict means that another writer was faster, and IsInvalid that the object was refused.
//
// Before any request, Apply returns an error if
//   - the owner is nil or has no UID;
//   - an object is nil, has no name, or is desired twice;
//   - the scheme of c does not have the type of the owner or of an object;
//   - the owner is cluster-scoped, and a namespaced object has no namespace;
//   - the garbage collector would delete an object at once: its owner is namespaced, and the object is cluster-scoped or
//     in another namespace.
//
// Apply reads the objects from c. With a manager's client that is the cache, so the kinds should be watched, as
// controller-runtime's Owns does. Apply remembers nothing between calls. An object that another writer changes back is
// therefore applied in every call. [Ensure] remembers its own writes, does not repeat one that the cache does not show yet,
// and slows down where another writer changes a child back again and again. What the API server or an admission plug-in
// rewrites is recorded in the object, and is not applied again by either.
//
// If two items of a list in an object have the same key, the error satisfies IsInvalid and names them, and the object is
// neither created nor applied.
func Apply(ctx context.Context, c client.Client, owner client.Object, desired ...client.Object) ([]Result, error) {
	o, err := newOwner(owner, c)
	if err != nil {
		return nil, err
	}
	a := newApplier()
	all, err := a.declare(&o, desired)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(all))
	var errs []error
	for i, d := range all {
		results[i], err = a.apply(ctx, &o, d)
		errs = append(errs, err)
	}
	return results, errors.Join(errs...)
}

// applier applies objects. What it remembers saves requests and comparisons, and keeps it from repeating a recreation or
// a write loop.
type applier struct {
	kinds     *kinds
	scopes    sync.Map      // *kind → bool: whether it is namespaced
	coverage  sync.Map      // coverage → bool: whether the cache covers the namespace
	apiReader client.Reader // reads past the cache; nil without a manager
	clock     clock.PassiveClock
	writes    *ownwrites.Writes
	versions  *versions
	children  *childMemory
	owners    *ownerMemory
	loops     *nameLoops
	metrics   *metrics
	recorder  events.EventRecorder // nil without a manager
}

func newApplier() *applier {
	m, v := newMetrics(), &versions{}
	return &applier{
		kinds: builtInKinds, clock: clock.RealClock{}, writes: ownwrites.New(clock.RealClock{}),
		versions: v, children: newChildMemory(m, v), owners: newOwnerMemory(v), loops: newNameLoops(m), metrics: m,
	}
}

var withoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

// apply creates or applies one object, if needed.
func (a *applier) apply(ctx context.Context, o *owner, child declared) (Result, error) {
	object, full, err := child.kind.normalize(child.object, child.options)
	if err != nil {
		return Result{}, err
	}
	return a.applyNormalized(ctx, o, child, object, full)
}

// applyNormalized applies one object in the form that normalize returns.
func (a *applier) applyNormalized(ctx context.Context, o *owner, child declared, object, full client.Object) (Result, error) {
	k := child.kind
	object, generate := withoutGenerated(o, object, child.options.generate)
	full, _ = withoutGenerated(o, full, generate)
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	encoded, err := k.comparer.AppendJSON((*buffer)[:0], object)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", k.describe(object), err)
	}
	sent := len(encoded)
	if child.binding != byReference { // it decides too whether the object is as desired
		encoded = append(encoded, byte(child.binding))
	}
	*buffer = encoded
	live, fromCache, err := a.read(ctx, o, k, object)
	if err != nil {
		return Result{}, err
	}
	if live != nil && a.children.isVerified(o, live, encoded) {
		return Result{Object: live, Operation: Unchanged, fromCache: fromCache}, nil
	}
	d := &desired{
		kind: k, object: object, full: full, sum: sumOf(encoded[:sent]), owner: o, options: child.options,
		binding: child.binding, builder: child.builder, order: child.order, hold: child.hold, generate: generate,
	}
	if live == nil {
		return a.create(ctx, d)
	}
	result, err := a.update(ctx, d, live)
	if err == nil && result.Operation == Unchanged {
		a.children.setVerified(o, live, encoded)
		result.fromCache = fromCache
	}
	return result, err
}

// read returns the live object from the cache, or the answer to our own last write if that is newer. It returns nil if
// there is none.
func (a *applier) read(ctx context.Context, o *owner, k *kind, obj client.Object) (live client.Object, fromCache bool, err error) {
	cached, name := k.empty(), client.ObjectKeyFromObject(obj)
	err = o.client.Get(ctx, name, cached, withoutCopy)
	switch {
	case err == nil:
		live = a.writes.Newer(cached)
		return live, live == cached, nil
	case apierrors.IsNotFound(err):
		return a.writes.Unseen(cached, name), false, nil
	}
	return nil, false, fmt.Errorf("read %s: %w", k.describe(obj), err)
}

// create creates an absent object. If it exists after all, create goes on with the live one.
func (a *applier) create(ctx context.Context, d *desired) (Result, error) {
	orphans, err := a.orphanedPods(ctx, d) // they have no controller, so what adopts them does not wait for anything
	if err != nil {
		return Result{}, err
	}
	if len(orphans) == 0 {
		if d.hold != "" {
			return Result{}, d.held("is not created")
		}
		if err := a.slowDownByName(d.owner, d.kind, d.object, creation, d.sum); err != nil {
			return Result{}, err
		}
	}
	if err := d.checkValues(); err != nil {
		return Result{}, err
	}
	if d.binding != byReference { // the garbage collector would not delete it
		if err := a.confirmAlive(ctx, d.owner); err != nil {
			return Result{}, err
		}
	}
	d.setGenerated(ctx, planFill(d.generate, nil))
	if err := a.keepReplicas(ctx, d, orphans); err != nil {
		return Result{}, err
	}
	if err := a.growLeftClaims(ctx, d); err != nil {
		return Result{}, err
	}
	answer, err := a.post(ctx, d)
	d.replicas = nil
	if apierrors.IsAlreadyExists(err) {
		return a.updateUnseen(ctx, d, err)
	}
	if err != nil {
		return Result{}, err
	}
	answer = a.remember(ctx, d, answer)
	a.owners.noteCreated(d, answer.GetUID())
	a.record(ctx, d.owner, d.kind, answer, outcomeCreated, "")
	return Result{Object: answer, Operation: Created}, nil
}

// maxCacheDelay is how far a cache may be behind. One that has not shown an object for longer will never show it.
const maxCacheDelay = time.Minute

// updateUnseen goes on with an object that exists although the cache does not show it. Somebody has just created it, or
// the cache's selector leaves it out.
func (a *applier) updateUnseen(ctx context.Context, d *desired, alreadyExists error) (Result, error) {
	live, err := a.readLive(ctx, d)
	if apierrors.IsNotFound(err) { // deleted in between: a lost race
		return Result{}, alreadyExists
	}
	if err != nil {
		return Result{}, fmt.Errorf("read %s, which exists but is not in the cache: %w", d, err)
	}
	result, err := a.update(ctx, d, live)
	if err == nil && a.clock.Since(live.GetCreationTimestamp().Time) > maxCacheDelay {
		err = &NotCachedError{Kind: d.kind.gvk.Kind, Name: client.ObjectKeyFromObject(live)}
	}
	return result, err
}

// update brings a live object to the desired state: it repairs drift, in whatever kind. It returns an error if the live
// object is not ours. The request is in write.go; refusal.go and contradiction.go handle a request that the API server
// refuses, such as that for a changed port of a Service.
func (a *applier) update(ctx context.Context, d *desired, live client.Object) (Result, error) {
	if err := a.claim(ctx, d, live); err != nil {
		return Result{}, err
	}
	if d.changesBinding(live) {
		if err := a.confirmAlive(ctx, d.owner); err != nil {
			return Result{}, err
		}
	}
	if d.binding != byReference && refersTo(live, d.owner.reference.UID) {
		const paths = "metadata.ownerReferences"
		if err := a.slowDown(d, live, paths); err != nil {
			return Result{}, err
		}
		var err error
		if live, err = a.unreference(ctx, d.owner, d.kind, live, d.binding); err != nil {
			return Result{}, err
		}
		a.children.countWrite(d, live.GetUID(), paths, a.clock.Now())
		a.record(ctx, d.owner, d.kind, live, outcomeApplied, paths)
	}
	needed, differences := a.needsApply(d, live)
	for _, path := range d.lacksGenerated(live) {
		needed, differences = true, append(differences, compare.Difference{Path: path})
	}
	if d.lacksRunFinalizer(live) {
		needed, differences = true, append(differences, compare.Difference{Path: "metadata.finalizers"})
	}
	if !needed {
		if err := silentRefusal(d, live); err != nil {
			return Result{}, a.refuse(ctx, d, err)
		}
		return Result{Object: live, Operation: Unchanged}, nil
	}
	if d.hold != "" && lastAppliedOf(live).hash != string(d.sum[:]) {
		return Result{Object: live}, d.held("is not changed") // what is built from it is repaired meanwhile
	}
	paths := pathsOf(differences)
	if set := live.GetAnnotations()[AnnotationSet]; set != d.owner.set {
		paths = "metadata.annotations[" + AnnotationSet + "]"
		if set != "" && !d.owner.isSet(set) {
			paths += ", by another step that builds the same object"
		}
	}
	if err := a.slowDown(d, live, paths); err != nil {
		return Result{}, err
	}
	if d.options.recreate && !a.owners.isRecreated(d, live) {
		if err := a.slowDownByName(d.owner, d.kind, live, recreation, d.sum); err != nil {
			return Result{}, err
		}
	}
	if err := d.checkValues(); err != nil {
		return Result{}, err
	}
	if d.options.expandVolumes {
		if err := a.expandVolumes(ctx, d, live); err != nil {
			return Result{}, err
		}
	}
	last := lastAppliedOf(live)
	d.rewritten, d.resetsOrder = last.rewritten, d.order == 0 && orderOf(live) != 0
	live, err := a.takeOver(ctx, d, live)
	if err != nil {
		return Result{}, err
	}
	if live, err = a.fillGenerated(ctx, d, live); err != nil {
		return Result{}, err
	}
	answer, before, err := a.applyTo(ctx, d, live)
	if err == nil {
		answer, err = a.reclaim(ctx, d, last, before, answer)
	}
	switch {
	case isTooLarge(err), isLiveUntypable(err):
		answer, err = a.writeByPatch(ctx, d, last, err)
	case err != nil:
		answer, err = a.recoverFrom(ctx, d, err)
	}
	if err != nil {
		return Result{}, err
	}
	a.children.countWrite(d, answer.GetUID(), paths, a.clock.Now())
	answer = a.remember(ctx, d, answer)
	if len(differences) == 0 { // the desired object has changed, in a way that the live one already covers
		paths = ""
	}
	a.record(ctx, d.owner, d.kind, answer, outcomeApplied, paths)
	if err := silentRefusal(d, answer); err != nil {
		return Result{}, a.refuse(ctx, d, err)
	}
	return Result{Object: answer, Operation: Applied}, nil
}

// needsApply reports whether the live object has to be applied, and in which fields it differs. It sends no request. Which
// fields are compared is in internal/compare. An object whose fields were not taken back after the last apply
// is applied again, although nothing differs.
func (a *applier) needsApply(d *desired, live client.Object) (needed bool, differences []compare.Difference) {
	last := lastAppliedOf(live)
	sameAsSent := last.hash == string(d.sum[:]) &&
		live.GetAnnotations()[AnnotationSet] == d.owner.set && orderOf(live) == d.order && d.isBound(live) && !isReclaimable(d, live)
	if sameAsSent && d.kind.comparer.Covers(d.object, live) {
		return false, nil
	}
	differences = d.kind.comparer.Differences(d.object, live)
	if sameAsSent && a.children.tolerates(live.GetUID(), differences) {
		return false, differences
	}
	if sameAsSent && last.rewritten != "" && last.rewritten == fingerprint(differences) { // remembered by the process before
		a.children.setTolerated(d.kind.gvk.Kind, live.GetUID(), differences)
		return false, differences
	}
	return true, differences
}

// remember keeps the answer to a write until the cache shows it, and the differences that the API server made. It returns
// the live object.
func (a *applier) remember(ctx context.Context, d *desired, answer client.Object) client.Object {
	differences := d.kind.comparer.Differences(d.object, answer)
	answer = a.recordRewritten(ctx, d, answer, fingerprint(differences))
	a.writes.Record(answer)
	a.owners.endRecreated(d)
	a.children.setTolerated(d.kind.gvk.Kind, answer.GetUID(), differences)
	return answer
}

// recordRewritten records in the object's annotation how the API server has rewritten what was sent. Otherwise every
// process that does not remember it, and every call of [Apply], would send the same again. This takes a second write, but
// only where the record changes: the first write had the record of the write before.
//
// It ignores errors. Without the record the object is applied again.
func (a *applier) recordRewritten(ctx context.Context, d *desired, answer client.Object, rewritten string) client.Object {
	last := lastAppliedOf(answer)
	if last.rewritten == rewritten || last.method == byOthers {
		return answer
	}
	before := last.String()
	last.rewritten = rewritten
	patch, err := json.Marshal([]jsonPatchOperation{
		{"test", "/metadata/uid", answer.GetUID()}, {"test", annotationPointer, before}, {"replace", annotationPointer, last.String()},
	})
	if err != nil {
		return answer
	}
	recorded := d.kind.empty()
	recorded.SetNamespace(answer.GetNamespace())
	recorded.SetName(answer.GetName())
	if err := a.jsonPatch(ctx, d, recorded, patch); err != nil {
		return answer
	}
	return recorded
}
