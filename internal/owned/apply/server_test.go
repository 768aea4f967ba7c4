package apply_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// controlPlane is an API server without controllers: only the tests write its objects.
var controlPlane = controlplane.Shared(controlplane.Options{CRDs: []string{"../testkinds"}})

// newServer returns a namespace of a real API server in which only the test writes. With -short the server is in memory instead. The owner
// exists.
func newServer(t *testing.T) *ownedtest.Server {
	t.Helper()
	if testing.Short() {
		return newInMemory(t)
	}
	return newRealServer(t)
}

// newInMemory returns a server in memory, for tests that need no real API server. The owner exists.
func newInMemory(t *testing.T) *ownedtest.Server {
	t.Helper()
	return ownedtest.NewInMemory(t, "../testkinds")
}

// newRealServer returns a namespace of a real API server even with -short, for tests of what the server in memory lacks: admission
// plug-ins, published schemas, and some validation.
func newRealServer(t *testing.T) *ownedtest.Server {
	t.Helper()
	return ownedtest.NewWithOwner(t, controlPlane(t))
}

func withAdopt() ownedtest.Option         { return func(o *owned.Options) { o.Adopt = true } }
func withExpandVolumes() ownedtest.Option { return func(o *owned.Options) { o.ExpandVolumes = true } }
func withRecreate() ownedtest.Option      { return func(o *owned.Options) { o.Recreate = true } }

func withFormerManagers(names ...string) ownedtest.Option {
	return func(o *owned.Options) { o.FormerManagers = names }
}

func withCreateOnly[C client.Object](unset func(C)) ownedtest.Option {
	return func(o *owned.Options) { o.CreateOnly = func(obj client.Object) { unset(obj.(C)) } }
}

func withGenerate(key string, length int) ownedtest.Option {
	return func(o *owned.Options) {
		o.Generate = append(o.Generate, owned.GeneratedKey{Name: key, Length: length})
	}
}
