package memoryserver

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/webhook"
)

var untypedType = reflect.TypeFor[*unstructured.Unstructured]()

// objectIn returns the object that clients read of v, in the API version of the kind. The object is shared: nobody may change it. The
// caller holds the lock.
func (s *Server) objectIn(k *kind.Kind, v *version) (client.Object, error) {
	if k == k.Storage() {
		return v.object, nil
	}
	if known := v.knownView(k, untypedType); known != nil {
		return known, nil
	}
	converted := v.earlierView(k, untypedType)
	if converted == nil {
		var err error
		if converted, err = s.convertTo(k, v.object); err != nil {
			return nil, err
		}
	}
	v.views = append(v.views, converted)
	return converted, nil
}

// convertTo converts an object to the API version of the kind, and removes the fields that this version does not have. It sets no defaults:
// the API server sets them when it decodes an object. The caller holds the lock.
func (s *Server) convertTo(k *kind.Kind, object client.Object) (client.Object, error) {
	if k.Versions == nil || object.GetObjectKind().GroupVersionKind() == k.GVK {
		return object, nil
	}
	converted, err := s.convert(k.Versions, object, k.GVK.GroupVersion())
	if err != nil {
		return nil, err
	}
	return k.Strategy.FromMap(converted.(*unstructured.Unstructured).Object, false)
}

// convert returns an object in another version. It does not remove fields that this version does not have. The caller holds the lock.
func (s *Server) convert(versions *kind.Versions, object client.Object, to schema.GroupVersion) (client.Object, error) {
	from := object.GetObjectKind().GroupVersionKind()
	switch {
	case versions.Of(to) == nil:
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", to)
	case versions.Of(from.GroupVersion()) == nil:
		return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", from.GroupVersion())
	case from.GroupVersion() == to:
		return object, nil
	case s.callsConversion(versions):
		return s.webhooks.Convert(versions.Conversion.URL, object.(*unstructured.Unstructured), to)
	}
	converted := object.DeepCopyObject().(client.Object)
	converted.GetObjectKind().SetGroupVersionKind(to.WithKind(from.Kind))
	return converted, nil
}

// encode returns a valid object in two forms: as clients read it and as the server stores it. Both are in the storage version. The caller
// holds the lock.
func (s *Server) encode(k *kind.Kind, obj client.Object, options writeOptions) (read, stored client.Object, err error) {
	if k == k.Storage() {
		return k.Strategy.Normalize(obj, options.applied)
	}
	if stored, err = s.convertTo(k.Storage(), obj); err != nil {
		return nil, nil, err
	}
	return readOf(k.Storage(), stored), stored, nil
}

// encodeChange is like encode, for an object that replaces the current version. If nothing else changes, it keeps the times in managed
// fields.
func (s *Server) encodeChange(k *kind.Kind, subresource string, obj client.Object, current *version, options writeOptions) (read, stored client.Object, err error) {
	switch {
	case k != k.Storage():
	case k.Custom && subresource == kind.ScaleSubresource: // the change of replicas may have created the parent field, such as spec
		keepTimestamps(k, obj, current.stored)
		return readOf(k, obj), obj, nil
	default:
		keepTimestamps(k, obj, current.stored)
		return s.encode(k, obj, options)
	}
	if stored, err = s.convertTo(k.Storage(), obj); err != nil {
		return nil, nil, err
	}
	keepTimestamps(k.Storage(), stored, current.stored)
	return readOf(k.Storage(), stored), stored, nil
}

// readOf returns the object that clients read of a stored object. It has the defaults, which the API server sets when it reads an object.
func readOf(storage *kind.Kind, stored client.Object) client.Object {
	read := stored.DeepCopyObject().(client.Object)
	if storage.Strategy.SetDefaults(read); storage.Strategy.Equal(read, stored) {
		return stored
	}
	return read
}

// fieldManager returns the field manager of a subresource of a kind. The caller holds the lock.
func (s *Server) fieldManager(k *kind.Kind, subresource string) *managedfields.FieldManager {
	if k.Versions == nil {
		return k.FieldManagers[subresource]
	}
	made := s.fieldManagers[k]
	if made == nil {
		made = k.Versions.NewFieldManagers(k, func(object client.Object, to schema.GroupVersion) (client.Object, error) {
			return s.convert(k.Versions, object, to)
		})
		s.fieldManagers[k] = made
	}
	return made[subresource]
}

// repeatable returns the request. It returns nil if the result also depends on a webhook, so it cannot be reused.
func (s *Server) repeatable(k *kind.Kind, request *writeRequest) *writeRequest {
	if k.Versions != nil && s.callsConversion(k.Versions) || s.reviews(k, "", false) || s.reviews(k, kind.StatusSubresource, false) {
		return nil
	}
	return request
}

// UnreachableConversion returns the error of a request in this version if the conversion webhook cannot be reached. If no webhook converts
// the version, it returns nil.
func (s *Server) UnreachableConversion(gvk schema.GroupVersionKind) error {
	k := s.kinds.find(gvk)
	if k == nil || k == k.Storage() || !s.callsConversion(k.Versions) {
		return nil
	}
	return asStatus(webhook.UnreachableConversion(k.Versions.Conversion.URL, k.Storage().GVK))
}

// Canonical returns the kind in the version in which [Server.Changes] reports changes: the storage version, or the first served version if
// the storage version is not served. If the server does not have the kind, it returns it unchanged.
func (s *Server) Canonical(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	if k := s.kinds.find(gvk); k != nil {
		return k.Canonical().GVK
	}
	return gvk
}

// InVersion returns an object of a [Change] in another version of its kind. For a nil object it returns nil. The result is shared: do not
// change it.
func (s *Server) InVersion(object client.Object, gvk schema.GroupVersionKind) (client.Object, error) {
	if object == nil || object.GetObjectKind().GroupVersionKind() == gvk {
		return object, nil
	}
	k, err := s.kind(gvk)
	if err != nil {
		return nil, err
	}
	revision, err := parseRevision(object.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.store.history[revision-firstRevision-1].after
	if as, known := s.scheme.AllKnownTypes()[gvk]; known {
		return s.view(k, v, reflect.PointerTo(as))
	}
	return s.view(k, v, untypedType)
}

// webhookConverted returns the kinds that the operator's webhook converts: their definitions have no conversion strategy, and their Go
// types can convert themselves. envtest does the same, since controller-gen writes no strategy into a definition.
func webhookConverted(scheme *runtime.Scheme, ks *kinds) (map[*kind.Versions]bool, error) {
	all := map[*kind.Versions]bool{}
	for gvk, k := range ks.custom {
		if k.Versions == nil || k.Versions.Conversion.Strategy != "" || !scheme.Recognizes(gvk) {
			continue
		}
		object, err := scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		converts, err := conversion.IsConvertible(scheme, object)
		if err != nil {
			return nil, fmt.Errorf("the versions of %s do not all convert: %w: one of them must be the hub, and all others need ConvertTo and ConvertFrom; "+
				"if the API server only changes apiVersion, say so in the custom resource definition: conversion: {strategy: None}", gvk.GroupKind(), err)
		}
		all[k.Versions] = converts
	}
	return all, nil
}

// callsConversion reports whether a webhook of the operator converts between the versions.
func (s *Server) callsConversion(versions *kind.Versions) bool {
	return versions.Conversion.Strategy == "Webhook" || s.convertible[versions]
}
