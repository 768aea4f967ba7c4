package ownedresources

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/references"
)

// inputReader is what the function of an input reads with. It reads what the input declares, and notes the versions of the
// objects that it reads from the API server.
type inputReader struct {
	client.Reader
	scheme     *runtime.Scheme
	live       client.Reader // nil without a manager
	unseen     func(kind string, obj metav1.Object)
	owner      client.Object
	references []references.Reference
	reads      []readVersion
}

// readVersion is the version in which an object was read from the API server. It is empty if there was none.
type readVersion struct {
	kind    schema.GroupVersionKind
	name    types.NamespacedName
	version string
}

var _ client.Reader = &inputReader{}

func (r *inputReader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return err
	}
	ref, err := r.declared(kind, name)
	if err != nil {
		return err
	}
	err = r.Reader.Get(ctx, name, obj, options...)
	if _, metadata := obj.(*metav1.PartialObjectMetadata); metadata || ref.Cached || cachesWhole(r.Reader, obj) {
		if apierrors.IsNotFound(err) && r.live != nil {
			if hidden := references.PastCache(ctx, r.live, kind, name); hidden != nil {
				r.unseen(kind.Kind, hidden)
			}
		}
		return err
	}
	if err == nil && r.live != nil {
		cached := &metav1.PartialObjectMetadata{}
		cached.SetGroupVersionKind(kind)
		if apierrors.IsNotFound(r.Reader.Get(ctx, name, cached)) {
			r.unseen(kind.Kind, obj)
		}
	}
	if client.IgnoreNotFound(err) == nil {
		read := readVersion{kind: kind, name: name}
		if err == nil {
			read.version = versionOf(obj)
		}
		r.reads = append(r.reads, read)
	}
	return err
}

// List is refused: an input is told of changes of the objects that it names, and of no others.
func (r *inputReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return fmt.Errorf("list of %T by an input: an input reads objects by the names that it declares; list in a step of your own", list)
}

// declared returns the reference that declares an object.
func (r *inputReader) declared(kind schema.GroupVersionKind, name client.ObjectKey) (references.Reference, error) {
	var found []references.Reference
	for _, ref := range r.references {
		declared, err := apiutil.GVKForObject(ref.Object, r.scheme)
		if err != nil {
			return references.Reference{}, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", ref.Object, err)
		}
		if declared.GroupKind() == kind.GroupKind() {
			found = append(found, ref)
		}
	}
	if len(found) == 0 {
		return references.Reference{}, fmt.Errorf("the input reads a %s, which it does not declare: add ownedresources.Reads of that kind to it, so that a change triggers a reconcile", kind.Kind)
	}
	for _, ref := range found {
		if slices.Contains(ref.Names(r.owner), name) {
			return ref, nil
		}
	}
	return references.Reference{}, fmt.Errorf("the input reads %s %s, which the function of its Reads does not name: return that name there, so that a change triggers a reconcile", kind.Kind, name)
}

// readsWhole is a reader that knows which objects it reads from the cache, such as the client of a step.
type readsWhole interface {
	client.Reader
	CachesWhole(obj client.Object) bool
}

var _ readsWhole = &references.Reader{}

// cachesWhole reports whether an object, which is not metadata, is read from the cache.
func cachesWhole(r client.Reader, obj client.Object) bool {
	known, ok := r.(readsWhole)
	return ok && known.CachesWhole(obj)
}

// inputReader returns what inputs are read with: no read is older than the event that triggered the reconcile. The client of a step
// takes care of that itself. Without a manager it is the client.
func (s *ChildSet[T]) inputReader(c client.Client) client.Reader {
	if _, step := c.(readsWhole); step || s.forms == nil {
		return c
	}
	return &references.Reader{Forms: s.forms, Cache: c, Live: s.applier.apiReader}
}

// noteUnseen notes that an input has read an object, or would have, which exists and which the cache does not show. If the cache is
// not only behind, no change of the object triggers a reconcile.
func (r *reconciliation[T]) noteUnseen(kind string, obj metav1.Object) {
	if r.set.applier.clock.Since(obj.GetCreationTimestamp().Time) <= maxCacheDelay {
		r.unseen = true
		return
	}
	name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	r.failures = append(r.failures, &NotCachedError{Kind: kind, Name: name})
}

func versionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// inputMemory is the value of an input that was read from the API server, for one owner.
type inputMemory struct {
	owner uint64 // the digest of what of the owner the input may read
	reads []readVersion
	value any
}

// remembered returns what is remembered of an input, if neither the owner nor what was read has changed since.
func (r *reconciliation[T]) remembered(input any) (known inputMemory, ok bool) {
	known, ok = r.set.applier.owners.input(r.owner.reference.UID, input)
	if !ok || known.owner != r.set.applier.owners.digestOwner(r.object) {
		return known, false
	}
	reader := r.set.inputReader(r.client)
	for _, read := range known.reads {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(read.kind)
		version := ""
		switch err := reader.Get(r.ctx, read.name, meta); {
		case err == nil:
			version = versionOf(meta)
		case !apierrors.IsNotFound(err):
			return known, false
		}
		if version != read.version {
			return known, false
		}
	}
	return known, true
}

// remember keeps a value that took requests to read. What was read from the cache is read again every time.
func (r *reconciliation[T]) remember(input any, reads []readVersion, value any, err error) {
	if err != nil || len(reads) == 0 {
		return
	}
	r.set.applier.owners.setInput(r.owner.reference.UID, input, inputMemory{r.set.applier.owners.digestOwner(r.object), reads, value})
}

// digestOwner returns a digest of an owner's spec, labels and annotations. The spec is known by its generation, or, for a kind
// without, by the resource version.
func (m *ownerMemory) digestOwner(owner client.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	maphash.WriteComparable(&h, m.versions.current())
	if generation := owner.GetGeneration(); generation != 0 {
		maphash.WriteComparable(&h, generation)
	} else {
		h.WriteString(owner.GetResourceVersion())
	}
	var pairs uint64 // the sum does not depend on the order of the maps
	for i, pairsOf := range []map[string]string{owner.GetLabels(), owner.GetAnnotations()} {
		for key, value := range pairsOf {
			pairs += maphash.Comparable(m.seed, [2]string{key, value}) * uint64(2*i+1)
		}
	}
	maphash.WriteComparable(&h, pairs)
	return h.Sum64()
}

func (m *ownerMemory) input(owner types.UID, input any) (inputMemory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.byUID[owner].inputs[input]
	return known, ok
}

func (m *ownerMemory) setInput(owner types.UID, input any, read inputMemory) {
	m.change(owner, func(r *ownerRecord) {
		if r.inputs == nil {
			r.inputs = map[any]inputMemory{}
		}
		r.inputs[input] = read
	})
}
