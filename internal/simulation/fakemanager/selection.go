package fakemanager

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// selection is which objects of a kind the cache holds, and how it transforms them.
type selection struct {
	namespaces map[string]labels.Selector // nil: all
	selector   labels.Selector            // nil: all
	transform  toolscache.TransformFunc
}

// selectionOf returns the selection for a kind according to the options.
func selectionOf(options *cache.Options, gvk schema.GroupVersionKind, scheme *runtime.Scheme) selection {
	s := selection{selector: options.DefaultLabelSelector, transform: options.DefaultTransform}
	namespaces := options.DefaultNamespaces
	for obj, of := range options.ByObject {
		kind, err := apiutil.GVKForObject(obj, scheme)
		if err != nil || kind != gvk {
			continue
		}
		if of.Label != nil {
			s.selector = of.Label
		}
		if of.Transform != nil {
			s.transform = of.Transform
		}
		if of.Namespaces != nil {
			namespaces = of.Namespaces
		}
	}
	if len(namespaces) > 0 {
		s.namespaces = map[string]labels.Selector{}
		for namespace := range maps.Keys(namespaces) {
			s.namespaces[namespace] = namespaces[namespace].LabelSelector
		}
	}
	return s
}

// matches reports whether the cache holds the object.
func (s *selection) matches(obj client.Object) bool {
	selector := s.selector
	if s.namespaces != nil && obj.GetNamespace() != "" {
		own, known := s.namespaces[obj.GetNamespace()]
		if !known {
			if own, known = s.namespaces[cache.AllNamespaces]; !known {
				return false
			}
		}
		if own != nil {
			selector = own
		}
	}
	return selector == nil || selector.Matches(labels.Set(obj.GetLabels()))
}

// covers reports whether the cache holds objects of a namespace, or cluster-scoped ones if it is empty.
func (s *selection) covers(namespace string) bool {
	if s.namespaces == nil || namespace == "" {
		return true
	}
	_, known := s.namespaces[namespace]
	_, all := s.namespaces[cache.AllNamespaces]
	return known || all
}

// watchedNamespaces returns the namespaces that are watched; [cache.AllNamespaces] stands for all.
func (s *selection) watchedNamespaces() []string {
	if s.namespaces == nil {
		return []string{cache.AllNamespaces}
	}
	return slices.Sorted(maps.Keys(s.namespaces))
}

// transformed returns an object as the cache holds it. It may change the object.
func (s *selection) transformed(obj client.Object) (client.Object, error) {
	if s.transform == nil {
		return obj, nil
	}
	made, err := s.transform(obj)
	if err != nil {
		return nil, err
	}
	return made.(client.Object), nil
}

// transformInPlace is transformed for an object that the caller of a read owns: the result is written into it.
func (s *selection) transformInPlace(obj client.Object) error {
	made, err := s.transformed(obj)
	if err == nil && made != obj {
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(made).Elem())
	}
	return err
}
