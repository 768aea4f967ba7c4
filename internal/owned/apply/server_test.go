package apply_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// controlPlane is an API server to whose objects only the tests write.
var controlPlane = controlplane.Shared(controlplane.Options{CRDs: []string{"../testkinds"}})

// sharedClient returns the same client to all tests, so that kinds are discovered once.
func sharedClient(cp *controlplane.ControlPlane) (client.Client, error) {
	shared.Do(func() { shared.client, shared.err = client.New(cp.Config(), client.Options{}) })
	return shared.client, shared.err
}

var shared struct {
	sync.Once
	client client.Client
	err    error
}

// newServer returns a namespace of a real API server in which only the test writes, and with -short one of a server in memory. The owner exists.
func newServer(t *testing.T) *ownedtest.Server {
	t.Helper()
	if testing.Short() {
		return newInMemory(t)
	}
	return newRealServer(t)
}

// newInMemory returns a server in memory, for what depends on the engine alone. The owner exists.
func newInMemory(t *testing.T) *ownedtest.Server {
	t.Helper()
	return ownedtest.NewInMemory(t, "../testkinds")
}

// newRealServer is newServer for what the server in memory does not have: admission plug-ins, published schemas, and some validation.
func newRealServer(t *testing.T) *ownedtest.Server {
	t.Helper()
	plane := controlPlane(t)
	other, err := sharedClient(plane)
	require.NoError(t, err)
	env := ownedtest.New(t, plane, other)
	env.Create(t, env.Owner)
	return env
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
