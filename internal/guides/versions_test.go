//go:build !race

// The other files of this package have the build tag too.

package guides

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/reconcile/storageversion"
)

func migrateStored(mgr ctrl.Manager) error {
	return storageversion.Migrate(mgr, &Shop{})
}

// TestMigrateStored checks that the line of main needs nothing but the kind in the scheme. What it does is tested in its package.
func TestMigrateStored(t *testing.T) {
	for _, tc := range []struct {
		scheme *runtime.Scheme
		known  bool
	}{{scheme, true}, {runtime.NewScheme(), false}} {
		mgr, err := ctrl.NewManager(&rest.Config{Host: "https://localhost:1"}, ctrl.Options{Scheme: tc.scheme})
		if err != nil {
			t.Fatal(err)
		}
		if err := migrateStored(mgr); (err == nil) != tc.known {
			t.Errorf("the kind is in the scheme: %t, error: %v", tc.known, err)
		}
	}
}
