// Package storageversion migrates what is stored of a custom resource to the storage version of its CustomResourceDefinition. An old
// version can be removed from a CustomResourceDefinition only after that, see
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.
//
// [Migrate] is one line in main:
//
//	if err := storageversion.Migrate(mgr, &cachev1.Memcached{}); err != nil {
//		return err
//	}
package storageversion
