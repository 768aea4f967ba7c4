package memoryserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modification is what an update, patch or apply makes of an object. It owns what it returns, and may
// not write to the live object.
type modification func(live client.Object) (client.Object, error)

// update replaces an object. The caller holds the lock.
func (s *Server) update(k *kind, key client.ObjectKey, subresource string, sent client.Object, options writeOptions) (client.Object, error) {
	if err := matchNamespace(k, key.Namespace, sent); err != nil {
		return nil, err
	}
	if err := matchName(sent, key.Name); err != nil {
		return nil, err
	}
	k.rules.setDefaults(sent)
	dropSameOwners(sent)
	if k.createOnUpdate && s.table(k).find(key) == nil {
		return s.createByUpdate(k, key, subresource, sent, options)
	}
	return s.modify(k, key, subresource, sent.GetUID(), options, func(live client.Object) (client.Object, error) {
		return k.fields[subresource].UpdateNoErrors(live, sent, options.manager).(client.Object), nil
	})
}

// createByUpdate is what an update of some kinds does with an object that is not there.
func (s *Server) createByUpdate(k *kind, key client.ObjectKey, subresource string, sent client.Object, options writeOptions) (client.Object, error) {
	if uid := sent.GetUID(); uid != "" {
		return nil, otherUID(k, key.Name, uid, "")
	}
	made := k.fields[subresource].UpdateNoErrors(k.rules.empty(), sent, options.manager).(client.Object)
	return s.insert(k, made, options)
}

// modify is the part that update, patch and apply have in common. A UID that is not empty is a
// precondition.
func (s *Server) modify(k *kind, key client.ObjectKey, subresource string, uid types.UID, options writeOptions, change modification) (client.Object, error) {
	current := s.table(k).find(key)
	if current == nil {
		return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
	}
	live := current.object
	if uid != "" && uid != live.GetUID() {
		return nil, otherUID(k, key.Name, uid, live.GetUID())
	}
	made, err := change(live)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(k, made, live); err != nil {
		return nil, err
	}
	if err := s.prepare(k, subresource, made, live); err != nil {
		return nil, err
	}
	keepTimestamps(k, made, current.stored)
	read, stored, err := k.rules.settle(made, options.applied)
	if err != nil {
		return nil, err
	}
	switch {
	case released(made, live):
		if !options.dryRun {
			s.remove(k, key)
		}
		return read, nil
	case k.rules.equal(stored, current.stored):
		return live, nil
	case options.dryRun:
		return read, nil
	}
	return s.commit(k, key, read, stored).object, nil
}

// checkVersion compares the resource version that the client has seen with the stored one.
func checkVersion(k *kind, made, live client.Object) error {
	switch made.GetResourceVersion() {
	case live.GetResourceVersion():
		return nil
	case "", "0":
		if k.lock {
			return apierrors.NewInvalid(schema.GroupKind{Group: k.resource.Group, Kind: k.resource.Resource}, live.GetName(), field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		}
		made.SetResourceVersion(live.GetResourceVersion())
		return nil
	}
	return staleVersion(k, live.GetName())
}

// prepare sets what clients cannot set and validates.
func (s *Server) prepare(k *kind, subresource string, made, live client.Object) error {
	made.SetGeneration(live.GetGeneration())
	if subresource == statusSubresource {
		k.rules.prepareStatus(made, live)
	} else {
		if err := k.rules.assign(s.table(k), made, live); err != nil {
			return err
		}
		k.rules.prepareUpdate(made, live)
	}
	if made.GetUID() == "" {
		made.SetUID(live.GetUID())
	}
	made.SetCreationTimestamp(live.GetCreationTimestamp())
	if live.GetDeletionTimestamp() != nil {
		made.SetDeletionTimestamp(live.GetDeletionTimestamp())
	}
	if live.GetDeletionGracePeriodSeconds() != nil && made.GetDeletionGracePeriodSeconds() == nil {
		made.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	}
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(made, k.namespaced, pathSegment, path)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(made, live, path)...)
	if subresource == statusSubresource {
		errs = append(errs, k.rules.validateStatus(made, live)...)
	} else {
		errs = append(errs, k.rules.validateUpdate(made, live)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(k.gvk.GroupKind(), made.GetName(), errs)
	}
	return nil
}

// pathSegment does not check names again that were checked when the object was created.
func pathSegment(string, bool) []string { return nil }

// keepTimestamps makes a write that changes nothing but when fields were written change nothing.
func keepTimestamps(k *kind, made, stored client.Object) {
	mine, before := made.GetManagedFields(), stored.GetManagedFields()
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
	made.SetManagedFields(restored)
	if !k.rules.equal(made, stored) {
		made.SetManagedFields(mine)
	}
}

// released reports whether an object that is being deleted has lost its last finalizer.
func released(made, live client.Object) bool {
	if len(made.GetFinalizers()) > 0 || live.GetDeletionTimestamp() == nil {
		return false
	}
	grace := live.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
