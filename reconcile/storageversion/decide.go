package storageversion

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// startPatience is how long the cluster may take to begin a migration. Some clusters serve the API, but do not run its controller.
	startPatience = time.Minute

	// patience is how long the cluster may take for a migration. If the cluster and this package migrate at the same time, that does no
	// harm: the second write of an object stores nothing.
	patience = 10 * time.Minute
)

// action is the next action for the migration of a kind.
type action string

const (
	nothing action = "nothing"
	request action = "create a StorageVersionMigration"
	await   action = "wait for the cluster's migration"
	write   action = "write all objects in the storage version"
	repair  action = "rename the managers of versions that are not served"
	remove  action = "delete our StorageVersionMigration"
)

// writes reports whether an action writes objects, or lets the cluster write them.
func (a action) writes() bool { return a == request || a == write || a == repair }

// clusterMigration is the state of Kubernetes' own migration of a kind.
type clusterMigration struct {
	served  bool // the cluster serves the API
	found   bool // a StorageVersionMigration of the kind exists
	ours    bool // this package has created it
	running bool
	ended   bool
	created time.Time
}

// decide returns the next action. walked is the generation of the CustomResourceDefinition at which this process has last finished a walk
// over all objects.
func decide(crd *apiextensionsv1.CustomResourceDefinition, m clusterMigration, walked int64, now time.Time) action {
	age := now.Sub(m.created)
	switch {
	case isMigrated(crd) && m.found && m.ended && m.ours:
		return remove
	case isMigrated(crd) && walked == crd.Generation:
		return nothing
	case isMigrated(crd):
		return repair
	case !m.served:
		return write
	case !m.found:
		return request
	case m.ended || age > patience || !m.running && age > startPatience:
		return write // storedVersions still has an older version: the cluster's migration failed, or the storage version has changed since then
	default:
		return await
	}
}

// isMigrated reports whether status.storedVersions names only the storage version.
func isMigrated(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Equal(crd.Status.StoredVersions, []string{storageVersion(crd).Name})
}

// hasWebhook reports whether a webhook converts between the versions. Without a webhook, the API server only changes apiVersion.
func hasWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// storageVersion returns the version in which the API server stores objects. A CustomResourceDefinition has exactly one.
func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionVersion {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version
		}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{}
}

// servedVersions returns the versions in which objects can be read. The storage version comes first, because it needs the fewest
// conversions.
func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []apiextensionsv1.CustomResourceDefinitionVersion {
	served := slices.DeleteFunc(slices.Clone(crd.Spec.Versions), func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Served })
	slices.SortStableFunc(served, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		switch {
		case a.Storage == b.Storage:
			return 0
		case a.Storage:
			return -1
		}
		return 1
	})
	return served
}
