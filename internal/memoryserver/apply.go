package memoryserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"
)

// apply is server-side apply: it creates the object if it is not there. The caller holds the lock.
func (s *Server) apply(k *kind, key client.ObjectKey, subresource string, content []byte, options writeOptions) (client.Object, error) {
	options.applied = true
	if s.table(k).find(key) == nil {
		if subresource != "" && !k.createOnUpdate {
			return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
		}
		return s.applyNew(k, key, subresource, content, options)
	}
	return s.modify(k, key, subresource, "", options, func(live client.Object) (client.Object, error) {
		return merge(k, key, subresource, live, content, options)
	})
}

func (s *Server) applyNew(k *kind, key client.ObjectKey, subresource string, content []byte, options writeOptions) (client.Object, error) {
	made, err := merge(k, key, subresource, k.rules.empty(), content, options)
	if err != nil {
		return nil, err
	}
	if uid := made.GetUID(); uid != "" {
		return nil, apierrors.NewConflict(k.groupResource(), key.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	return s.insert(k, made, options)
}

func merge(k *kind, key client.ObjectKey, subresource string, live client.Object, content []byte, options writeOptions) (client.Object, error) {
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	twice, err := decodeYAML(content, patch.Object)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if _, held := k.rules.(*custom); held {
		live = live.DeepCopyObject().(client.Object) // the merged object shares parts with it
	}
	merged, err := k.fields[subresource].Apply(live, patch, options.manager, options.force)
	if err != nil {
		return nil, err
	}
	if options.strict && twice != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", twice))
	}
	made := merged.(client.Object)
	dropSameOwners(made)
	if err := matchNamespace(k, key.Namespace, made); err != nil {
		return nil, err
	}
	return made, matchName(made, key.Name)
}

// decodeYAML also says of fields that are there twice. Clients send JSON, which is YAML too and is
// decoded ten times as fast.
func decodeYAML(content []byte, into map[string]any) (twice, err error) {
	if found, err := json.UnmarshalStrict(content, &into); err == nil && len(found) == 0 {
		return nil, nil
	}
	clear(into)
	if err := yaml.Unmarshal(content, &into); err != nil {
		return nil, err
	}
	return yaml.UnmarshalStrict(content, &map[string]any{}), nil
}

// validatePatchOptions refuses an apply without manager, and force without apply.
func validatePatchOptions(kind types.PatchType, manager string, force *bool) error {
	options := &metav1.PatchOptions{FieldManager: manager, Force: force}
	if errs := validation.ValidatePatchOptions(options, kind); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return nil
}
