// Package storageversion migrates the stored objects of a custom resource to the storage version of its CustomResourceDefinition. An old
// version can be removed from a CustomResourceDefinition only after that, see
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
// The API server converts an object to the storage version only when it is written, and status.storedVersions lists every version that an
// object may be stored in. If it lists another version than the storage version, the package
//
//   - creates a StorageVersionMigration and waits, if the cluster serves storagemigration.k8s.io in v1 or v1beta1. If the cluster's controller does not
//     begin within a minute, fails, or does not end within 10 minutes, the package goes on by itself. It does so too if the operator may not
//     create or read the StorageVersionMigration, which the log says once.
//   - otherwise lists the metadata of all objects in pages of 500, and sends an empty patch for each, 50 a second at most: see [Rate]. The API server stores an object again if its bytes differ. The generation, the
//     spec, the status and managedFields stay as they are.
//   - then sets status.storedVersions to the storage version alone, if the spec of the CustomResourceDefinition is the same as before the list.
//
// Each of these begins 5 seconds after the package has seen the CustomResourceDefinition, so that all replicas of the API server know it.
//
// It begins again where that is needed: after the end of a process at any point, after a change or a rollback of the CustomResourceDefinition. What is
// stored already is not stored again, so a second process does no harm.
//
// It also renames the version of managers in metadata.managedFields that is not served any more, by a patch of such an object. Otherwise the API server
// refuses each server-side apply of the object as soon as the version is removed: "request to convert CR to an invalid group/version". The
// managers own the same paths as before. So stop to serve a version in one release, and remove it in a later one. If it was removed at once, the
// package repairs the objects when it runs next, which is every 10 minutes and at the start.
//
// It writes nothing, and creates no StorageVersionMigration, if a write would drop the fields that the storage version does not have: the CustomResourceDefinition
// has several versions and names no conversion webhook, and either the operator converts them (controller-runtime's conversion.Hub and Convertible, or a
// converter of builder.WithConverter), or the manager's scheme has types for several versions, and an older version has a field that the storage version does not have.
//
// # What it reports
//
// The condition StorageMigrating of the CustomResourceDefinition is True while objects are written. Then it is False, with the reason MigrationSucceeded, or
// MigrationFailed. The package tries again after 5 seconds to 10 minutes, and storedVersions stays. The message says which of these it is:
//
//   - A schema, a webhook or a policy refuses objects. The message names up to five. The others are written, and only these are tried again, until the
//     CustomResourceDefinition changes.
//   - The API server fails to write objects, as without the conversion webhook. The same holds, but ten of them in a row end the walk.
//   - A right is missing. The walk ends at the first object.
//
// If the API server does not answer, or has no time, a request is sent three times, and then the walk ends. The log alone says so. The metric opblocks_storage_migration_objects counts objects by their
// state, and the log has the begin, the end and each error.
//
// # What it needs
//
// These rights, here for the resource memcacheds.cache.example.com. The last two are for the cluster's own migration. An operator with rights in some
// namespaces only cannot list all objects, and cannot use the package.
//
//	// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=memcacheds.cache.example.com,verbs=get
//	// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=memcacheds.cache.example.com,verbs=patch
//	// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;patch
//	// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
//	// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=create
//	// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,resourceNames=memcacheds.cache.example.com,verbs=get;delete
//
// The empty patch goes to the status subresource, if the kind has one. So webhooks for the object itself are not called. A conversion webhook
// is, and has to be up.
package storageversion
