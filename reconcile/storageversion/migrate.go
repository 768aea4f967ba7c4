package storageversion

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Migrate adds the storage migration of a kind to a manager. It runs on the leader, beside the controllers. The object is an empty object of
// any version of the kind that the manager's scheme knows.
//
// It returns an error if the scheme does not know the type of the object, or if the kind is migrated already by this manager.
func Migrate(mgr manager.Manager, object client.Object) error {
	if _, err := apiutil.GVKForObject(object, mgr.GetScheme()); err != nil {
		return fmt.Errorf("migrate stored objects: register the type %T in the manager's scheme: %w", object, err)
	}
	return nil
}
