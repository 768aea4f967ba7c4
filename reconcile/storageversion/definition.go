package storageversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons of the condition StorageMigrating. Kubernetes' own migration sets the same reasons.
const (
	reasonRunning   = "MigrationRunning"
	reasonSucceeded = "MigrationSucceeded"
	reasonFailed    = "MigrationFailed"
)

// errChanged means that the CustomResourceDefinition has changed while its objects were written. So some objects may be stored in an
// older version.
var errChanged = errors.New("the CustomResourceDefinition has changed: its objects are written again")

// readDefinition returns the CustomResourceDefinition of the kind.
func (m *migrator) readDefinition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := m.mapper.RESTMapping(m.kind)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("install the CustomResourceDefinition of %s: %w", m.kind, err)
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", m.kind, err)
	}
	return m.readDefinitionNamed(ctx, mapping.Resource.GroupResource().String())
}

func (m *migrator) readDefinitionNamed(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := newDefinition(name)
	if err := m.reader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinition %s, which only a custom resource has: %w", name, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
		return nil, fmt.Errorf("read the CustomResourceDefinition %s: %w", name, err)
	}
	return &crd, nil
}

// newDefinition returns an unstructured CustomResourceDefinition, so that the manager's scheme need not have the type.
func newDefinition(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	object.SetName(name)
	return object
}

// withCondition returns the conditions of a CustomResourceDefinition, with the condition StorageMigrating changed. If nothing has to be
// changed, it returns false.
//
// The cluster's controller reads from observedGeneration at which generation its own migration began. At the end, it removes versions
// from storedVersions only if the generation is still the same. So this package sets observedGeneration only after a success. If the API
// server does not keep the field, it stays empty.
func withCondition(crd *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string, now metav1.Time) ([]apiextensionsv1.CustomResourceDefinitionCondition, bool) {
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.StorageMigrating, Status: status, Reason: reason, Message: message, LastTransitionTime: now,
	}
	if reason == reasonSucceeded {
		condition.ObservedGeneration = crd.Generation
	}
	var all []apiextensionsv1.CustomResourceDefinitionCondition
	found := false
	for _, other := range crd.Status.Conditions {
		if other.Type != condition.Type {
			all = append(all, other)
			continue
		}
		if reason != reasonSucceeded || other.ObservedGeneration == 0 && other.Reason == reason {
			condition.ObservedGeneration = other.ObservedGeneration
		}
		if other.Status == status && other.Reason == reason && other.Message == message && other.ObservedGeneration == condition.ObservedGeneration {
			return crd.Status.Conditions, false
		}
		if other.Status == status {
			condition.LastTransitionTime = other.LastTransitionTime
		}
		all, found = append(all, condition), true
	}
	if !found {
		all = append(all, condition)
	}
	return all, true
}

// condition returns the condition StorageMigrating, or an empty one if it does not exist.
func condition(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionCondition {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.StorageMigrating {
			return c
		}
	}
	return apiextensionsv1.CustomResourceDefinitionCondition{}
}

// patchStatus writes the condition StorageMigrating, and storedVersions if any are given. If the CustomResourceDefinition, except its
// status, has changed since crd was read, patchStatus returns errChanged. If nothing has to be changed, it sends nothing.
func (m *migrator) patchStatus(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string, stored ...string) error {
	const attempts = 5 // other controllers write the status too
	var err error
	for range attempts {
		live, readErr := m.readDefinitionNamed(ctx, crd.Name)
		if readErr != nil {
			return readErr
		}
		if live.UID != crd.UID || live.Generation != crd.Generation {
			return errChanged
		}
		conditions, changed := withCondition(live, status, reason, message, metav1.Time{Time: m.clock.Now()})
		if !changed && (len(stored) == 0 || isMigrated(live)) {
			return nil
		}
		content := map[string]any{"conditions": conditions}
		if len(stored) > 0 {
			content["storedVersions"] = stored
		}
		patch, marshalErr := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion}, "status": content,
		})
		if marshalErr != nil {
			return marshalErr
		}
		err = m.writer.Status().Patch(ctx, newDefinition(crd.Name), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write the status of the CustomResourceDefinition %s: %w", crd.Name, err)
	}
	return nil
}
