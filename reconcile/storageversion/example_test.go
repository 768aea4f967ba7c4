package storageversion_test

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/storageversion"
)

// Migrate is called in main, together with the set-up of the controllers. The kind has several versions.
func ExampleMigrate() {
	setUp := func(mgr ctrl.Manager, memcached client.Object) error {
		return storageversion.Migrate(mgr, memcached)
	}
	_ = setUp
}

// If the API server has a high load, ten writes a second may be enough.
func ExampleRate() {
	setUp := func(mgr ctrl.Manager, memcached client.Object) error {
		return storageversion.Migrate(mgr, memcached, storageversion.Rate(10))
	}
	_ = setUp
}
