package storageversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The label of a StorageVersionMigration that this package has created, and may delete.
const (
	managedBy = "app.kubernetes.io/managed-by"
	us        = "opblocks"
)

var migrationKind = schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}

// migrationStatus is what this package reads of a StorageVersionMigration, which is the same in v1beta1 and v1. It is read untyped, since
// Kubernetes' libraries do not have the type in all versions that this module works with.
type migrationStatus struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// newMigration returns a StorageVersionMigration with the name of the CustomResourceDefinition, or nil if the cluster does not serve the API.
// Version v1alpha1 has other fields and is not used.
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

// readMigration returns the cluster's own migration of a kind, and the object, which is nil if the cluster does not serve the API.
func (m *migrator) readMigration(ctx context.Context, crd string) (clusterMigration, *unstructured.Unstructured, error) {
	object, err := m.newMigration(crd)
	if err != nil || object == nil {
		return clusterMigration{}, nil, err
	}
	state := clusterMigration{served: true}
	err = m.reader.Get(ctx, client.ObjectKey{Name: crd}, object)
	if client.IgnoreNotFound(err) != nil {
		return state, nil, fmt.Errorf("read the StorageVersionMigration %s: %w", crd, err)
	}
	if err != nil {
		return state, object, nil
	}
	var status migrationStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status); err != nil {
		return state, nil, fmt.Errorf("read the StorageVersionMigration %s: %w", crd, err)
	}
	conditions := status.Status.Conditions
	state.found, state.ours, state.created = true, object.GetLabels()[managedBy] == us, object.GetCreationTimestamp().Time
	state.running = meta.IsStatusConditionTrue(conditions, "Running")

	// The cluster takes a migration that has succeeded out of Running only after it has written storedVersions.
	state.ended = !state.running && (meta.IsStatusConditionTrue(conditions, "Succeeded") || meta.IsStatusConditionTrue(conditions, "Failed"))
	return state, object, nil
}

// requestMigration creates the StorageVersionMigration of a kind.
func (m *migrator) requestMigration(ctx context.Context, migration *unstructured.Unstructured, resource schema.GroupResource) error {
	migration.SetLabels(map[string]string{managedBy: us})
	migration.Object["spec"] = map[string]any{"resource": map[string]any{"group": resource.Group, "resource": resource.Resource}}
	if err := client.IgnoreAlreadyExists(m.writer.Create(ctx, migration)); err != nil {
		return fmt.Errorf("create the StorageVersionMigration %s: %w", migration.GetName(), err)
	}
	m.log.Info("The cluster migrates the stored objects", "StorageVersionMigration", migration.GetName())
	return nil
}

// removeMigration deletes our StorageVersionMigration, so that the next storage version can have one of the same name.
func (m *migrator) removeMigration(ctx context.Context, migration *unstructured.Unstructured) error {
	uid := migration.GetUID()
	err := m.writer.Delete(ctx, migration, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the StorageVersionMigration %s: %w", migration.GetName(), err)
	}
	return nil
}
