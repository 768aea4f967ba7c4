package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/internal/versions"
)

// Operation is what was done to an object. CreateOrUpdate of controller-runtime returns the same type.
type Operation = controllerutil.OperationResult

const (
	// Unchanged: the live object is as desired. No request was sent.
	Unchanged = controllerutil.OperationResultNone
	// Created: the object was absent, and was created.
	Created = controllerutil.OperationResultCreated
	// Applied: the live object was not as desired, so the desired object was applied to it.
	Applied = controllerutil.OperationResultUpdated
)

// Result is what [ownedresources.Apply] did to one object.
type Result struct {
	// Object is the live object. It may be the object in the cache's memory: do not modify it.
	Object client.Object
	// Operation is what was done.
	Operation Operation

	FromCache bool // Object is the version in the cache, and not the answer to a later write of ours
}

// Applier applies objects. Its memory saves requests and comparisons. The memory also keeps the Applier from recreating a child twice for
// the same change, and slows down writes that another writer undoes again and again.
type Applier struct {
	Kinds *owned.Kinds
	Cache Cache
	owned.Scopes
	Clock       clock.PassiveClock
	Writes      *ownwrites.Writes
	Versions    *versions.Epoch
	Children    *memory.Children
	Loops       *memory.NameLoops
	Recreations *memory.Recreations
	report.Reporter
}

// New returns an Applier for the kinds in client-go. A set with a manager replaces its Kinds, so that it knows the schemas of the API
// server.
func New() *Applier {
	m, v := report.NewMetrics(), &versions.Epoch{}
	return &Applier{
		Kinds: owned.BuiltIn, Clock: clock.RealClock{}, Writes: ownwrites.New(clock.RealClock{}),
		Versions: v, Children: memory.NewChildren(m, v), Loops: memory.NewNameLoops(m), Recreations: memory.NewRecreations(), Reporter: report.Reporter{Metrics: m},
	}
}

// ForgetOwner drops what is remembered of the children of an owner that does not exist any more.
func (a *Applier) ForgetOwner(owner types.UID) {
	a.Loops.Forget(owner)
	a.Recreations.Forget(owner)
}

// AsCached are the options of a read that returns the object in the cache's memory itself. Nobody may change this object. A large Secret or
// ConfigMap may have hashes in place of long values.
var AsCached = []client.GetOption{&client.GetOptions{UnsafeDisableDeepCopy: new(true)}, hashedvalues.AsHashed}

// Begin applies one object if needed. If the object does not exist, Begin writes nothing and returns a [Creation]: [Send] sends it, and
// [Applier.FinishCreation] handles the answer.
func (a *Applier) Begin(ctx context.Context, o *owned.Owner, child owned.Declared) (Result, *Creation, error) {
	object, full, err := child.Kind.Normalize(child.Object, child.Options)
	if err != nil {
		return Result{}, nil, err
	}
	return a.beginNormalized(ctx, o, child, object, full)
}

// applyNormalized creates or applies one object that [owned.Kind.Normalize] has returned.
func (a *Applier) applyNormalized(ctx context.Context, o *owned.Owner, child owned.Declared, object, full client.Object) (Result, error) {
	result, c, err := a.beginNormalized(ctx, o, child, object, full)
	if c == nil {
		return result, err
	}
	Send(ctx, c)
	return a.FinishCreation(ctx, c)
}

func (a *Applier) beginNormalized(ctx context.Context, o *owned.Owner, child owned.Declared, object, full client.Object) (Result, *Creation, error) {
	k := child.Kind
	object, generate := feature.WithoutGenerated(o, object, child.Options.Generate)
	full, _ = feature.WithoutGenerated(o, full, generate)
	buffer := owned.Buffers.Get().(*[]byte)
	defer owned.Buffers.Put(buffer)
	encoded, err := k.Comparer.AppendJSON((*buffer)[:0], object)
	if err != nil {
		return Result{}, nil, fmt.Errorf("%s: %w", k.Describe(object), err)
	}
	sent := len(encoded)
	if child.Binding != owned.ByReference { // the way in which the child names its owner is a part of the desired state
		encoded = append(encoded, byte(child.Binding))
	}
	*buffer = encoded
	live, fromCache, err := a.Read(ctx, o, k, object)
	if err != nil {
		return Result{}, nil, err
	}
	if live != nil && a.Children.IsVerified(o, live, encoded) {
		return Result{Object: live, Operation: Unchanged, FromCache: fromCache}, nil, nil
	}
	d := &owned.Desired{
		Kind: k, Object: object, Full: full, Sum: owned.SumOf(encoded[:sent]), Owner: o, Options: child.Options,
		Binding: child.Binding, Builder: child.Builder, Order: child.Order, Hold: child.Hold, Generate: generate, Reads: child.Reads,
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
		a.Children.SetVerified(o, live, encoded)
		result.FromCache = fromCache
	}
	return result, nil, err
}

// Read returns the live object from the cache, or the answer to our own last write if the answer is newer. If the object does not exist,
// Read returns nil. The cache may have hashes in place of the object's values. If such a value is not as desired, Read reads the object
// from the API server.
func (a *Applier) Read(ctx context.Context, o *owned.Owner, k *owned.Kind, obj client.Object) (live client.Object, fromCache bool, err error) {
	return read(ctx, a.Writes, o, k, obj)
}

func read(ctx context.Context, writes *ownwrites.Writes, o *owned.Owner, k *owned.Kind, obj client.Object) (live client.Object, fromCache bool, err error) {
	cached, name := k.Empty(), client.ObjectKeyFromObject(obj)
	unseen := writes.Unseen(cached, name)
	err = o.Client.Get(ctx, name, cached, AsCached...)
	switch {
	case err == nil:
		if live = writes.Newer(unseen, cached); live != cached {
			return live, false, nil
		}
		whole, ok := hashedvalues.Restore(cached, obj)
		if ok {
			return whole, true, nil
		}
		whole = k.Empty()
		if err = o.Client.Get(ctx, name, whole); err == nil {
			return whole, whole.GetResourceVersion() == cached.GetResourceVersion(), nil
		}
	case apierrors.IsNotFound(err):
		return unseen, false, nil
	}
	if apierrors.IsNotFound(err) { // the object was deleted after the cache had shown it
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("read %s: %w", k.Describe(obj), err)
}

// MaxCacheDelay is the longest time that a cache may be behind the API server. If a cache has not shown an object for longer, it never
// will.
const MaxCacheDelay = time.Minute

// UpdateUnseen reads an object from the API server and updates it. The object exists although the cache does not show it: somebody has just
// created it, or the cache's selector leaves it out. alreadyExists is the error of the creation that failed for this reason. If the object
// is older than [MaxCacheDelay], and the update does not bring it into the cache, the error is an [*owned.NotCachedError].
func (a *Applier) UpdateUnseen(ctx context.Context, d *owned.Desired, alreadyExists error) (Result, error) {
	live, err := readUnseen(ctx, d, alreadyExists)
	if err != nil {
		return Result{}, err
	}
	result, err := a.update(ctx, d, live)
	if err == nil && a.Clock.Since(live.GetCreationTimestamp().Time) > MaxCacheDelay && !a.Cache.getsIn(d, live, result.Object) {
		err = &owned.NotCachedError{Kind: d.Kind.GVK.Kind, Name: client.ObjectKeyFromObject(live)}
	}
	return result, err
}

// readUnseen reads an object that exists although the cache does not show it. If the object was deleted in between, the error is
// alreadyExists.
func readUnseen(ctx context.Context, d *owned.Desired, alreadyExists error) (client.Object, error) {
	live, err := d.ReadLive(ctx)
	switch {
	case apierrors.IsNotFound(err): // the object was deleted in between
		return nil, alreadyExists
	case err != nil:
		return nil, fmt.Errorf("read %s, which exists but is not in the cache: %w", d, err)
	}
	return live, nil
}
