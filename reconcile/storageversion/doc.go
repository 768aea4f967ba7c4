// Package storageversion migrates the stored objects of a custom resource to the storage version of its CustomResourceDefinition. Only
// after that can an old version be removed from the CustomResourceDefinition, see
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.
//
// [Migrate] is one line in main:
//
//	if err := storageversion.Migrate(mgr, &cachev1.Memcached{}); err != nil {
//		return err
//	}
//
// # What it does
//
// The API server converts an object to the storage version only when the object is written. status.storedVersions lists every version in
// which an object may be stored. If it lists another version than the storage version, the package does this:
//
//   - If the cluster serves storagemigration.k8s.io in v1 or v1beta1, the package creates a StorageVersionMigration and waits. If the
//     cluster's controller does not begin within a minute, fails, or does not end within 10 minutes, the package writes the objects itself.
//     It also does so if the operator may not create or read the StorageVersionMigration, and logs that once.
//   - If the cluster does not serve that API, the package lists the metadata of all objects in pages of 500, and sends an empty patch for
//     each, at most 50 a second: see [Rate]. The API server stores an object again if its bytes differ. The generation, the spec, the
//     status and managedFields stay as they are.
//   - Then the package sets status.storedVersions to the storage version alone, if the spec of the CustomResourceDefinition is the same as
//     before the list.
//
// Each of these steps begins 5 seconds after the package has seen the CustomResourceDefinition, so that all replicas of the API server know
// it.
//
// The package begins again when that is needed: after the process was stopped at any point, and after a change or a rollback of the
// CustomResourceDefinition. An object that is stored in the storage version already is not stored again, so a second process does no harm.
//
// If managers in metadata.managedFields of an object name a version that is not served any more, the package patches the object so that
// they name a served version. Otherwise, as soon as the version is removed, the API server refuses each server-side apply of the object:
// "request to convert CR to an invalid group/version". The managers own the same paths as before. So stop serving a version in one release,
// and remove it in a later one. If a version was removed at once, the package repairs the objects in its next run, which is every 10
// minutes and at the start.
//
// The package writes nothing, and creates no StorageVersionMigration, if a write would drop fields that the storage version does not have.
// This can happen if the CustomResourceDefinition has several versions and no conversion webhook, and one of these is true:
//   - The operator converts the versions, by controller-runtime's conversion.Hub and Convertible or by a converter of
//     builder.WithConverter.
//   - The manager's scheme has types for several versions, and an older version has a field that the storage version does not have.
//
// # What it reports
//
// The condition StorageMigrating of the CustomResourceDefinition is True while objects are written. Afterwards it is False, with the reason
// MigrationSucceeded or MigrationFailed. After a failure, storedVersions stays as it is, and the package tries again after 5 seconds to 10
// minutes. The message says what has failed:
//
//   - A schema, a webhook or a policy refuses objects. The message names up to five. The walk through all objects writes the others. Until the
//     CustomResourceDefinition changes, later walks try only the refused objects again.
//   - The API server fails to write objects, for instance because the conversion webhook does not run. The same holds, but after ten
//     failures in a row the walk ends.
//   - A permission is missing. The walk ends at the first object.
//
// If the API server does not answer, or is too busy, the walk sends a request three times, and then ends. Only the log says so. The metric
// opblocks_storage_migration_objects counts objects by their state, and the log has the beginning, the end and each error.
//
// # What it needs
//
// It needs these permissions, here for the resource memcacheds.cache.example.com. The last two are for the StorageVersionMigration. An
// operator with permissions only in some namespaces cannot list all objects, and cannot use the package.
//
//	// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=memcacheds.cache.example.com,verbs=get
//	// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=memcacheds.cache.example.com,verbs=patch
//	// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;patch
//	// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
//	// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=create
//	// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,resourceNames=memcacheds.cache.example.com,verbs=get;delete
//
// If the kind has a status subresource, the empty patch is sent to that. So webhooks for the object itself are not called. A conversion
// webhook is called, and has to run.
package storageversion
