package fakemanager

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// transformed returns the result of the transform function of a cache. If transform is nil, it returns obj. It may change obj.
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
