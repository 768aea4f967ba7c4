package fakemanager

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// transformed returns an object as a cache with this transform holds it. The transform may be nil. It may change obj.
func transformed(obj client.Object, transform toolscache.TransformFunc) (client.Object, error) {
	if transform == nil {
		return obj, nil
	}
	made, err := transform(obj)
	if err != nil {
		return nil, err
	}
	return made.(client.Object), nil
}
