package set

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/step"
)

// InputReader is the reader that an input's function gets. It reads only objects that the input declares, and records their versions.
type InputReader struct {
	client.Reader
	Scheme     *runtime.Scheme
	live       client.Reader // reads from the API server; nil without a manager
	unseen     func(kind string, obj metav1.Object)
	owner      client.Object
	references []references.Reference

	reads     []owned.ReadVersion
	pastCache bool // an object was read from the API server, and not from the cache
	failed    bool // a read failed, so the list of reads is not complete
}

var _ client.Reader = &InputReader{}

// newInputReader returns the reader of an input with these references, for one reconcile. The reader has a copy of the owner: see
// ownerOfInputs.
func (r *Reconciliation) newInputReader(refs []references.Reference) *InputReader {
	return &InputReader{
		Reader: r.Set.inputReader(r.client), Scheme: r.client.Scheme(), live: r.Set.APIReader, unseen: r.noteUnseen,
		owner: r.ownerOfInputs(), references: refs,
	}
}

// Get reads an object that the input declares, and records its version. For any other object, it returns an error.
func (r *InputReader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, r.Scheme)
	if err != nil {
		return err
	}
	ref, err := r.declared(kind, name)
	if err != nil {
		return err
	}
	hashed, err := r.get(ctx, name, obj, options)
	read := owned.ReadVersion{Kind: kind, Name: name}
	switch {
	case err == nil:
		read.Version = versionOf(obj)
	case !apierrors.IsNotFound(err):
		r.failed = true
		return err
	}
	r.reads = append(r.reads, read)
	if r.live == nil {
		_, metadata := obj.(*metav1.PartialObjectMetadata)
		r.pastCache = r.pastCache || !metadata && !ref.Cached && !cachesWhole(r.Reader, obj)
		return err
	}
	_, metadata := obj.(*metav1.PartialObjectMetadata)
	if metadata || ref.Cached || cachesWhole(r.Reader, obj) {
		r.pastCache = r.pastCache || hashed
		if err == nil {
			return nil
		}
		hidden, listErr := references.PastCache(ctx, r.live, kind, name)
		switch {
		case listErr != nil:
			r.failed = true
			return listErr
		case hidden != nil:
			r.unseen(kind.Kind, hidden)
		}
		return err
	}
	r.pastCache = true
	if err == nil {
		cached := &metav1.PartialObjectMetadata{}
		cached.SetGroupVersionKind(kind)
		if apierrors.IsNotFound(r.Reader.Get(ctx, name, cached)) {
			r.unseen(kind.Kind, obj)
		}
	}
	return err
}

// get reads an object. If the cache has hashes in place of the object's values, get reads the object from the API server instead, and
// hashed is true.
func (r *InputReader) get(ctx context.Context, name client.ObjectKey, obj client.Object, options []client.GetOption) (hashed bool, err error) {
	err = r.Reader.Get(ctx, name, obj, append(slices.Clip(options), hashedvalues.AsHashed)...)
	if err != nil || !hashedvalues.IsHashed(obj) {
		return false, err
	}
	return true, r.Reader.Get(ctx, name, obj, options...)
}

// List returns an error. An input reads objects by name, because only changes of the objects that it names trigger a reconcile.
func (r *InputReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return fmt.Errorf("list of %T by an input: an input reads objects by the names that it declares; list in a step of your own", list)
}

// declared returns the reference of the input that names an object. If none does, it returns an error.
func (r *InputReader) declared(kind schema.GroupVersionKind, name client.ObjectKey) (references.Reference, error) {
	var found []references.Reference
	for _, ref := range r.references {
		declared, err := apiutil.GVKForObject(ref.Object, r.Scheme)
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

// cachesWhole reports whether objects of this type are read from the cache as whole objects, and not only as metadata.
func cachesWhole(r client.Reader, obj client.Object) bool {
	known, ok := r.(step.Reader)
	return ok && known.CachesWhole(obj)
}

// epochOfReads returns the number that versions.Epoch has for the objects that inputs read. It changes when resource versions have gone
// back.
func (s *Set) epochOfReads(c client.Client) uint64 {
	if known, ok := s.inputReader(c).(step.Reader); ok {
		return known.Epoch()
	}
	return 0
}

// inputReader returns the reader of inputs. No object that it reads is older than the event that triggered the reconcile. If c is the
// client of a step, c itself makes sure of that. Without a manager, inputReader returns c.
func (s *Set) inputReader(c client.Client) client.Reader {
	if _, ofStep := c.(step.Reader); ofStep || s.Forms == nil {
		return c
	}
	return &references.Reader{Forms: s.Forms, Cache: c, Live: s.APIReader}
}

// noteUnseen is called if an object that an input reads exists, and the cache does not show it. If the object is at most
// [apply.MaxCacheDelay] old, the cache may only be behind. If it is older, the cache leaves it out, so its changes trigger no reconcile.
// Then the reconcile fails with a [*owned.NotCachedError].
func (r *Reconciliation) noteUnseen(kind string, obj metav1.Object) {
	if r.Set.Applier.Clock.Since(obj.GetCreationTimestamp().Time) <= apply.MaxCacheDelay {
		r.unseen = true
		return
	}
	name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	r.failures = append(r.failures, &owned.NotCachedError{Kind: kind, Name: name})
}

func versionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// remembered returns the remembered value of an input. If the owner or an object that was read has changed since, ok is false.
func (r *Reconciliation) remembered(input *Input) (known inputMemory, ok bool) {
	if r.readsAnew {
		return known, false
	}
	known, ok = r.Set.Owners.input(r.owner.Reference.UID, input)
	if !ok || known.owner != r.digestOwner() {
		return known, false
	}
	return known, r.areCurrent(known.reads)
}

// areCurrent reports whether the cache still shows the objects in the versions in which they were read.
func (r *Reconciliation) areCurrent(reads []owned.ReadVersion) bool {
	reader := r.Set.inputReader(r.client)
	return !slices.ContainsFunc(reads, func(read owned.ReadVersion) bool {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(read.Kind)
		switch err := reader.Get(r.ctx, read.Name, meta); {
		case apierrors.IsNotFound(err):
			return read.Version != ""
		case err != nil:
			return true
		}
		return versionOf(meta) != read.Version
	})
}

// remember keeps the value of an input if reading it took requests. A value that was read only from the cache is not kept: each reconcile
// reads it again.
func (r *Reconciliation) remember(input *Input, owner uint64, reader *InputReader, value any, err error) {
	r.unknown = r.unknown || reader.failed
	if r.readsAnew || err != nil || reader.failed || !reader.pastCache {
		return
	}
	r.Set.Owners.setInput(r.owner.Reference.UID, input, inputMemory{owner, reader.reads, value})
}

// digestOwner returns a hash of the parts of the owner that an input may read.
func (r *Reconciliation) digestOwner() uint64 {
	return r.Set.Owners.digestOwner(r.Object, r.Set.epochOfReads(r.client))
}
