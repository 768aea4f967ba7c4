package storageversion

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The label of the StorageVersionMigrations that this package has created. The package deletes only objects with this
// label.
const (
	managedBy = "app.kubernetes.io/managed-by"
	us        = "opblocks"
)

var migrationKind = schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}

// migrationStatus has the fields of a StorageVersionMigration that this package reads. They are the same in v1beta1 and v1. The object is
// read as unstructured, because some versions of k8s.io/api that this module supports do not have the type.
type migrationStatus struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// newMigration returns a StorageVersionMigration with the name of the CustomResourceDefinition. If the cluster does not serve the API in
// v1 or v1beta1, it returns nil. Version v1alpha1 has other fields and is not used.
func (m *migrator) newMigration(crd string) (*unstructured.Unstructured, error) {
	mapping, err := m.mapper.RESTMapping(migrationKind)
	if meta.IsNoMatchError(err) || err == nil && mapping.GroupVersionKind.Version == "v1alpha1" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out whether the cluster migrates storage versions: %w", err)
	}
	migration := &unstructured.Unstructured{}
	migration.SetGroupVersionKind(mapping.GroupVersionKind)
	migration.SetName(crd)
	return migration, nil
}

// readMigration returns the state of Kubernetes' own migration of a kind, and the StorageVersionMigration. If the cluster does not
// serve the API, that object is nil.
func (m *migrator) readMigration(ctx context.Context, crd string) (clusterMigration, *unstructured.Unstructured, error) {
	object, err := m.newMigration(crd)
	if err != nil || object == nil {
		return clusterMigration{}, nil, err
	}
	err = m.reader.Get(ctx, client.ObjectKey{Name: crd}, object)
	if apierrors.IsNotFound(err) {
		return clusterMigration{served: !m.alone}, object, nil
	}
	if isUnusable(err) {
		m.goAlone(fmt.Errorf("read the StorageVersionMigration %s: %w", crd, err))
		return clusterMigration{}, nil, nil
	}
	state := clusterMigration{served: true}
	if err != nil {
		return state, nil, fmt.Errorf("read the StorageVersionMigration %s: %w", crd, err)
	}
	var status migrationStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
		return state, nil, fmt.Errorf("read the StorageVersionMigration %s: %w", crd, err)
	}
	conditions := status.Status.Conditions
	state.found, state.ours, state.created = true, object.GetLabels()[managedBy] == us && !m.alone, object.GetCreationTimestamp().Time
	state.running = meta.IsStatusConditionTrue(conditions, "Running")

	// The cluster writes storedVersions before it sets the condition Running of a successful migration to False.
	state.ended = !state.running && (meta.IsStatusConditionTrue(conditions, "Succeeded") || meta.IsStatusConditionTrue(conditions, "Failed"))
	return state, object, nil
}

// requestMigration creates the StorageVersionMigration of a kind.
func (m *migrator) requestMigration(ctx context.Context, migration *unstructured.Unstructured, resource schema.GroupResource) error {
	migration.SetLabels(map[string]string{managedBy: us})
	migration.Object["spec"] = map[string]any{"resource": map[string]any{"group": resource.Group, "resource": resource.Resource}}
	err := client.IgnoreAlreadyExists(m.writer.Create(ctx, migration))
	if err != nil {
		err = fmt.Errorf("create the StorageVersionMigration %s: %w", migration.GetName(), err)
	}
	if isUnusable(err) {
		m.goAlone(err)
		return nil
	}
	if err != nil {
		return err
	}
	m.log.Info("The cluster migrates the stored objects", "StorageVersionMigration", migration.GetName())
	return nil
}

// removeMigration deletes our StorageVersionMigration, so that it can be created again for the next storage version,
// which needs the same name.
func (m *migrator) removeMigration(ctx context.Context, migration *unstructured.Unstructured) error {
	uid := migration.GetUID()
	err := m.writer.Delete(ctx, migration, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	err = fmt.Errorf("delete the StorageVersionMigration %s: %w", migration.GetName(), err)
	if isUnusable(err) {
		m.goAlone(err)
		return nil
	}
	return err
}

// isUnusable reports whether Kubernetes' own migration cannot be used: a permission is missing, a policy refuses it, or the cluster does
// not serve the API any more. The package then writes the objects itself.
func isUnusable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err) || isDenial(err)
}

// goAlone makes the process ignore Kubernetes' own migration from now on, and logs that once.
func (m *migrator) goAlone(err error) {
	if !m.alone {
		m.log.Info("The cluster's own migration cannot be used, so the objects are written directly", "reason", explain(err).Error())
	}
	m.alone = true
}
