package kind

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions are the versions of a custom kind that has several. Objects are stored in one of them.
type Versions struct {
	All        []*Kind // includes versions that are not served
	Storage    *Kind
	Served     []*Kind
	Conversion Conversion

	// NewFieldManagers returns the field managers of one version, by subresource. They convert objects by convert.
	NewFieldManagers func(k *Kind, convert Convert) map[string]*managedfields.FieldManager
}

// Conversion says how objects are converted between versions.
type Conversion struct {
	Strategy string // "None" or "Webhook"; "" if the definition has no strategy
	URL      string // the address of the webhook
}

// Convert returns an object in another version. It may share memory with the object.
type Convert func(object client.Object, to schema.GroupVersion) (client.Object, error)

// Of returns the kind in a version, nil if there is none.
func (v *Versions) Of(version schema.GroupVersion) *Kind {
	for _, k := range v.All {
		if k.GVK.GroupVersion() == version {
			return k
		}
	}
	return nil
}

// Storage returns the kind in the version in which objects are stored.
func (k *Kind) Storage() *Kind {
	if k.Versions == nil {
		return k
	}
	return k.Versions.Storage
}

// Canonical returns the kind in the version in which the server reports changes: the storage version, or the first served version if the
// storage version is not served.
func (k *Kind) Canonical() *Kind {
	if k.Versions == nil {
		return k
	}
	for _, served := range k.Versions.Served {
		if served == k.Versions.Storage {
			return served
		}
	}
	return k.Versions.Served[0]
}
