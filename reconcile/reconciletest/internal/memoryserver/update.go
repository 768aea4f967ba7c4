package memoryserver

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// modification returns the object that results from an update, patch or apply. The caller may change the result. live must not be changed.
type modification func(live client.Object) (client.Object, error)

// update replaces an object. The caller holds the lock.
func (s *Server) update(k *kind.Kind, key client.ObjectKey, subresource string, sent client.Object, options writeOptions) (client.Object, error) {
	if err := matchNamespace(k, key.Namespace, sent); err != nil {
		return nil, err
	}
	if err := matchName(sent, key.Name); err != nil {
		return nil, err
	}
	k.Strategy.SetDefaults(sent)
	dedupOwnerReferences(sent)
	if k.CreateOnUpdate && s.store.find(k, key) == nil {
		return s.createByUpdate(k, key, subresource, sent, options)
	}
	return s.modify(k, key, subresource, sent.GetUID(), options, s.store.newObjectRequest(k, subresource, sent, options), func(live client.Object) (client.Object, error) {
		return s.fieldManager(k, subresource).UpdateNoErrors(live, sent, options.manager).(client.Object), nil
	})
}

// createByUpdate creates the object of an update that does not exist yet. Only some kinds allow this.
func (s *Server) createByUpdate(k *kind.Kind, key client.ObjectKey, subresource string, sent client.Object, options writeOptions) (client.Object, error) {
	if uid := sent.GetUID(); uid != "" {
		return nil, uidConflict(k, key.Name, uid, "")
	}
	obj := s.fieldManager(k, subresource).UpdateNoErrors(k.Strategy.New(), sent, options.manager).(client.Object)
	return s.insert(k, obj, options, nil)
}

// modify does what update, patch and apply have in common. It returns the stored object, in the storage version. If the write removes the
// last finalizer of an object that is being deleted, modify removes the object, and returns it in the version of the request. If uid is not
// empty, it is a precondition. request is nil if the result depends on anything but the request and the current version. If the object
// changes while a webhook is called, modify begins again. The caller holds the lock.
func (s *Server) modify(k *kind.Kind, key client.ObjectKey, subresource string, uid types.UID, options writeOptions, request *writeRequest, change modification) (client.Object, error) {
	for range maxAttempts {
		made, err := s.tryModify(k, key, subresource, uid, options, s.repeatable(k, request), change)
		if !errors.Is(err, errChanged) {
			return made, err
		}
	}
	return nil, versionConflict(k, key.Name)
}

// maxAttempts is how many times a write is tried if the object changes while webhooks are called.
const maxAttempts = 5

// errChanged is the error of a write if the object has changed while a webhook was called.
var errChanged = errors.New("the object has changed")

func (s *Server) tryModify(k *kind.Kind, key client.ObjectKey, subresource string, uid types.UID, options writeOptions, request *writeRequest, change modification) (client.Object, error) {
	current := s.store.find(k, key)
	if current == nil {
		return nil, apierrors.NewNotFound(k.GroupResource(), key.Name)
	}
	live, err := s.objectIn(k, current)
	if err != nil {
		return nil, err
	}
	if uid != "" && uid != live.GetUID() {
		return nil, uidConflict(k, key.Name, uid, live.GetUID())
	}
	if earlier := s.store.earlierResult(k, current, request); earlier != nil {
		return s.store.reuse(k, key, earlier), nil
	}
	obj, err := change(live)
	if err != nil {
		return nil, err
	}
	w := &write{kind: k, key: key, operation: admission.Update, subresource: subresource, options: options}
	if obj, err = s.mutate(w, obj, live); err != nil {
		return nil, err
	}
	if err := checkVersion(k, obj, live); err != nil {
		return nil, err
	}
	if err := s.prepare(k, subresource, obj, live); err != nil {
		return nil, err
	}
	if err := s.validate(w, obj, live); err != nil {
		return nil, err
	}
	if s.store.find(k, key) != current {
		return nil, errChanged
	}
	return s.replace(w, obj, current, request)
}

// replace stores an object as the next version, if it differs from the current one.
func (s *Server) replace(w *write, obj client.Object, current *version, request *writeRequest) (client.Object, error) {
	k := w.kind
	read, stored, err := s.encodeChange(k, w.subresource, obj, current, w.options)
	if err != nil {
		return nil, err
	}
	switch {
	case losesLastFinalizer(obj, current.object):
		if !w.options.dryRun {
			s.store.remove(k, w.key)
		}
		if k != k.Storage() {
			return obj, nil // it was not stored, so it is not in the storage version
		}
		return read, nil
	case k.Storage().Strategy.Equal(stored, current.stored):
		return current.object, nil
	case w.options.dryRun:
		return read, nil
	}
	made := s.store.commit(k, w.key, read, stored)
	made.request = request
	return made.object, nil
}

// checkVersion returns an error if the object's resource version is not the stored one.
func checkVersion(k *kind.Kind, obj, live client.Object) error {
	switch obj.GetResourceVersion() {
	case live.GetResourceVersion():
		return nil
	case "", "0":
		if k.RequireVersion {
			return apierrors.NewInvalid(schema.GroupKind{Group: k.Resource.Group, Kind: k.Resource.Resource}, live.GetName(), field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		}
		obj.SetResourceVersion(live.GetResourceVersion())
		return nil
	}
	return versionConflict(k, live.GetName())
}

// prepare sets the fields that clients cannot set, and then validates the object.
func (s *Server) prepare(k *kind.Kind, subresource string, obj, live client.Object) error {
	obj.SetGeneration(live.GetGeneration())
	if subresource == kind.StatusSubresource {
		k.Strategy.PrepareForStatusUpdate(obj, live)
	} else {
		if err := k.Strategy.Allocate(k, s.store.table(k).objects, obj, live); err != nil {
			return err
		}
		k.Strategy.PrepareForUpdate(obj, live)
	}
	if obj.GetUID() == "" {
		obj.SetUID(live.GetUID())
	}
	obj.SetCreationTimestamp(live.GetCreationTimestamp())
	if live.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
	}
	if live.GetDeletionGracePeriodSeconds() != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	}
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(obj, k.Namespaced, anyName, path)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, live, path)...)
	if subresource == kind.StatusSubresource {
		errs = append(errs, k.Strategy.ValidateStatus(obj, live)...)
	} else {
		errs = append(errs, k.Strategy.ValidateUpdate(obj, live)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(k.GVK.GroupKind(), obj.GetName(), errs)
	}
	return nil
}

// anyName accepts every name. Names are validated only at creation.
func anyName(string, bool) []string { return nil }

// keepTimestamps restores the times in managed fields if nothing else has changed. So the write changes nothing.
func keepTimestamps(k *kind.Kind, obj, stored client.Object) {
	mine, before := obj.GetManagedFields(), stored.GetManagedFields()
	if len(mine) != len(before) {
		return
	}
	restored, moved := slices.Clone(mine), false
	for i := range mine {
		moved = moved || !mine[i].Time.Equal(before[i].Time)
		restored[i].Time = before[i].Time
	}
	if !moved || !equality.Semantic.DeepEqual(restored, before) {
		return
	}
	obj.SetManagedFields(restored)
	if !k.Strategy.Equal(obj, stored) {
		obj.SetManagedFields(mine)
	}
}

// losesLastFinalizer reports whether a write removes the last finalizer of an object that is being deleted.
func losesLastFinalizer(obj, live client.Object) bool {
	if len(obj.GetFinalizers()) > 0 || live.GetDeletionTimestamp() == nil {
		return false
	}
	grace := live.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
