package kind

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These are the subresources that the server has. The subresource "" is the object itself.
const (
	StatusSubresource = "status"
	ScaleSubresource  = "scale"
)

// Kind describes a kind in one version. All servers of a process share it, so it never changes.
type Kind struct {
	GVK        schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Singular   string // the resource's name for one object
	Namespaced bool
	Custom     bool // defined by a custom resource definition, so objects are unstructured

	HasStatus        bool // has a status subresource
	HasScale         bool // has a scale subresource; the strategy is a Scaler
	RequireVersion   bool // an update must name the resource version
	OrphanDependents bool // a deletion orphans its dependents unless its options say otherwise
	CreateOnUpdate   bool // an update creates an object that does not exist
	Allocates        bool // the strategy allocates values that must be unique among the kind's objects

	// Selectable are the fields that field selectors may use, in addition to the name and the namespace. Each has the value that the field
	// counts as if it is absent.
	Selectable map[string]string

	Strategy      Strategy
	FieldManagers map[string]*managedfields.FieldManager // by subresource; nil for a kind with several versions

	// Versions are all versions of the kind, including this one. It is nil if the kind has only one version.
	Versions *Versions
}

// GroupResource returns the resource without its version, as errors name it.
func (k *Kind) GroupResource() schema.GroupResource { return k.Resource.GroupResource() }

// Key returns the key under which an object of the kind is stored: a cluster-scoped object has no namespace.
func (k *Kind) Key(namespace, name string) client.ObjectKey {
	if !k.Namespaced {
		namespace = ""
	}
	return client.ObjectKey{Namespace: namespace, Name: name}
}
