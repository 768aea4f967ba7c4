package ownedresources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
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
// is already as desired. It sets the owner's namespace on an object without one, in place.
//
// Apply returns one result per object, in the same order. All objects are tried, whatever happens to the others. The
// result of an object that failed has a nil Object, except with a [*NotCachedError].
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
//   - the garbage collector would delete an object at once: its owner is namespaced, and the object is cluster-scoped
//     or in another namespace.
//
// Apply reads the objects from c. With a manager's client that is the cache, so the kinds should be watched, as
// controller-runtime's Owns does. Apply remembers nothing between calls. An object that another writer changes back is
// therefore applied in every call. [Ensure] remembers its own writes, does not repeat one that the cache does not show
// yet, and slows down where another writer changes a child back again and again. Both store in the object what the API
// server or an admission plug-in has rewritten, and do not apply it again.
//
// If two items of a list in an object have the same key, the error satisfies IsInvalid and names them, and the object
// is neither created nor applied.
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
	results, errs := make([]Result, len(all)), make([]error, len(all))
	for rank := range ranks {
		creations := map[int]*creation{}
		for i, d := range all {
			if rankOf(d.kind.gvk.Kind) == rank {
				results[i], creations[i], errs[i] = a.begin(ctx, &o, d)
			}
		}
		maps.DeleteFunc(creations, func(_ int, c *creation) bool { return c == nil })
		indices := slices.Sorted(maps.Keys(creations))
		pending := make([]*creation, len(indices))
		for j, i := range indices {
			pending[j] = creations[i]
		}
		send(ctx, pending...)
		for _, i := range indices {
			results[i], errs[i] = a.finishCreation(ctx, creations[i])
		}
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
	versions  *versions.Epoch
	children  *childMemory
	owners    *ownerMemory
	loops     *nameLoops
	metrics   *metrics
	recorder  events.EventRecorder // nil without a manager
}

func newApplier() *applier {
	m, v := newMetrics(), &versions.Epoch{}
	return &applier{
		kinds: builtInKinds, clock: clock.RealClock{}, writes: ownwrites.New(clock.RealClock{}),
		versions: v, children: newChildMemory(m, v), owners: newOwnerMemory(v), loops: newNameLoops(m), metrics: m,
	}
}

var withoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

// begin applies one object if needed. If there is none, it returns how to create it: see send and finishCreation.
func (a *applier) begin(ctx context.Context, o *owner, child declared) (Result, *creation, error) {
	object, full, err := child.kind.normalize(child.object, child.options)
	if err != nil {
		return Result{}, nil, err
	}
	return a.beginNormalized(ctx, o, child, object, full)
}

// applyNormalized creates or applies one object in the form that normalize returns.
func (a *applier) applyNormalized(ctx context.Context, o *owner, child declared, object, full client.Object) (Result, error) {
	result, c, err := a.beginNormalized(ctx, o, child, object, full)
	if c == nil {
		return result, err
	}
	send(ctx, c)
	return a.finishCreation(ctx, c)
}

func (a *applier) beginNormalized(ctx context.Context, o *owner, child declared, object, full client.Object) (Result, *creation, error) {
	k := child.kind
	object, generate := withoutGenerated(o, object, child.options.generate)
	full, _ = withoutGenerated(o, full, generate)
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	encoded, err := k.comparer.AppendJSON((*buffer)[:0], object)
	if err != nil {
		return Result{}, nil, fmt.Errorf("%s: %w", k.describe(object), err)
	}
	sent := len(encoded)
	if child.binding != byReference { // the binding too decides whether the object is as desired
		encoded = append(encoded, byte(child.binding))
	}
	*buffer = encoded
	live, fromCache, err := a.read(ctx, o, k, object)
	if err != nil {
		return Result{}, nil, err
	}
	if live != nil && a.children.isVerified(o, live, encoded) {
		return Result{Object: live, Operation: Unchanged, fromCache: fromCache}, nil, nil
	}
	d := &desired{
		kind: k, object: object, full: full, sum: sumOf(encoded[:sent]), owner: o, options: child.options,
		binding: child.binding, builder: child.builder, order: child.order, hold: child.hold, generate: generate, reads: child.reads,
	}
	if live == nil {
		c, err := a.prepareCreation(ctx, d)
		if err != nil {
			return Result{}, nil, err
		}
		return Result{}, c, nil
	}
	result, err := a.update(ctx, d, live)
	if err == nil && result.Operation == Unchanged {
		a.children.setVerified(o, live, encoded)
		result.fromCache = fromCache
	}
	return result, nil, err
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

// maxSteps is more than the number of steps that follow each other for one object.
const maxSteps = 16

// update brings a live object of any kind to the desired state. It returns an error if the live object is not ours. plan.go
// decides what is done next; write.go sends it. The code in refusal.go and contradiction.go handles a request that the API
// server refuses, such as a changed port of a Service.
func (a *applier) update(ctx context.Context, d *desired, live client.Object) (Result, error) {
	s := &state{desired: d, live: live, known: map[fact]bool{}}
	for range maxSteps {
		known, _ := a.children.detailsOf(s.live.GetUID())
		s.rewritten = known.rewritten
		p := decide(stages, s)
		if need, missing := s.missing(p); missing {
			if err := a.learn(ctx, s, need, p); err != nil {
				return Result{}, err
			}
			continue
		}
		d.former = cmp.Or(p.adopts, d.former)
		if result, done, err := a.execute(ctx, s, p); done || err != nil {
			return result, err
		}
	}
	return Result{}, fmt.Errorf("%s changes while it is applied", d)
}

// learn finds out a fact that a plan needs.
func (a *applier) learn(ctx context.Context, s *state, need fact, p plan) (err error) {
	switch need {
	case ownerIsAlive:
		err = a.confirmAlive(ctx, s.owner)
	case formerIsGone:
		if former, ok := errors.AsType[formerError](p.err); ok {
			s.gone, err = a.isGone(ctx, s.owner, former.mark)
		}
	case paceOfWrites:
		s.paced, s.delay = p.paths, a.slowDown(s.desired, s.live, p.paths)
		if s.delay == nil && p.verb != doBind && s.options.recreate && !a.owners.isRecreated(s.desired, s.live) {
			s.delay = a.slowDownByName(s.owner, s.kind, s.live, recreation, s.sum)
		}
	}
	s.known[need] = err == nil
	return err
}

// execute does what was planned for a live object. It returns done as false if something else has to be done after it.
func (a *applier) execute(ctx context.Context, s *state, p plan) (result Result, done bool, err error) {
	d := s.desired
	if isCovered := p.verb == doNothing || p.verb == doRefuse; isCovered && len(p.differences) > 0 && !containsAll(s.rewritten, p.differences) {
		a.children.setRewritten(d.kind.gvk.Kind, s.live.GetUID(), p.differences) // an earlier process has recorded them
	}
	switch p.verb {
	case doNothing:
		return Result{Object: s.live, Operation: Unchanged}, true, nil
	case doReturn:
		if p.isOurs {
			result.Object = s.live
		}
		return result, true, p.err
	case doCollect:
		orphan, _ := errors.AsType[orphanError](p.err)
		return Result{}, true, a.deleteOrphan(ctx, d, s.live, orphan)
	case doRemove:
		if _, err := a.removeMarked(ctx, d.owner, d.kind, s.live); err != nil {
			return Result{}, true, err
		}
		former, _ := errors.AsType[formerError](p.err)
		return Result{}, true, former.WaitingError
	case doRefuse:
		return Result{}, true, a.refuse(ctx, d, p.err)
	case doBind:
		if s.live, err = a.unreference(ctx, d.owner, d.kind, s.live, d.binding); err == nil {
			a.children.countWrite(d, s.live.GetUID(), p.paths, a.clock.Now())
			a.report(ctx, d.owner, d.kind, s.live, outcomeApplied, p.paths)
		}
		return Result{}, false, err
	case doExpand: // if the API server would refuse other changes, the object is applied, which returns that refusal
		err := a.expandVolumes(ctx, d, s.live)
		s.known[restIsApplied] = err == nil
		return Result{}, false, err
	}
	result, err = a.applyDesired(ctx, s, p)
	return result, true, err
}

// applyDesired applies an object, and does what follows from the answer.
func (a *applier) applyDesired(ctx context.Context, s *state, p plan) (Result, error) {
	d, last := s.desired, record.LastAppliedOf(s.live)
	d.rewritten, d.resetsOrder = last.Rewritten, d.order == 0 && record.OrderOf(s.live) != 0
	live, err := a.takeOver(ctx, d, s.live)
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
	case isLiveUntypable(err):
		answer, err = a.writeByPatch(ctx, d, last, err)
	case err != nil:
		answer, err = a.recoverFrom(ctx, d, err)
	}
	if err != nil {
		return Result{}, withSizeRemedy(err)
	}
	a.children.countWrite(d, answer.GetUID(), p.paths, a.clock.Now())
	answer = a.remember(ctx, d, answer)
	paths := p.paths
	if len(p.differences) == 0 { // the desired object has changed, in a way that the live one already covers
		paths = ""
	}
	a.report(ctx, d.owner, d.kind, answer, outcomeApplied, paths)
	if err := silentRefusal(d, answer); err != nil {
		return Result{}, a.refuse(ctx, d, err)
	}
	return Result{Object: answer, Operation: Applied}, nil
}

// remember keeps the answer to a write until the cache shows it. It also keeps the rewritten differences. It returns
// the live object.
func (a *applier) remember(ctx context.Context, d *desired, answer client.Object) client.Object {
	differences := d.kind.comparer.Differences(d.object, answer)
	answer = a.recordRewritten(ctx, d, answer, fingerprint(differences))
	a.writes.Record(answer)
	a.owners.endRecreated(d)
	a.children.setRewritten(d.kind.gvk.Kind, answer.GetUID(), differences)
	return answer
}

// recordRewritten stores a hash of the rewritten differences in the record opblocks.dev/applied. Without it, every
// process that does not remember them, and every call of [Apply], would send the same again. The hash takes a second
// write, which is sent only if the hash has changed: the first write carried the hash of the write before it.
//
// It ignores errors. Without the hash the object is applied again.
func (a *applier) recordRewritten(ctx context.Context, d *desired, answer client.Object, rewritten string) client.Object {
	last := record.LastAppliedOf(answer)
	if last.Rewritten == rewritten || last.Method == record.ByOthers {
		return answer
	}
	before := last.String()
	last.Rewritten = rewritten
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
