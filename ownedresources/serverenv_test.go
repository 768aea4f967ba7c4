package ownedresources

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// The control planes of the tests: controlPlane runs no controllers, so only the tests write to its objects. cluster
// runs the controllers of Kubernetes.
var (
	controlPlane = controlplane.Shared(controlplane.Options{CRDs: []string{shopsFile}})
	cluster      = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"../internal/owned/testkinds"}})
)

// serverEnv is a namespace of an API server with a Shop as the owner. Tests reconcile sets of children in it, or
// start an operator.
type serverEnv struct {
	*ownedtest.Server
	elsewhere string   // another namespace; only newClusterEnv sets it
	spec      ShopSpec // the spec of every new owner
}

// newEnvInMemory returns a server in memory, on which the owner exists. It is for tests that need no real API server.
func newEnvInMemory(t *testing.T) *serverEnv {
	t.Helper()
	return &serverEnv{Server: ownedtest.NewInMemory(t, shopsFile)}
}

// newServerEnv returns a namespace of a real API server, on which the owner exists. No controller runs there.
func newServerEnv(t *testing.T) *serverEnv {
	t.Helper()
	return &serverEnv{Server: ownedtest.NewWithOwner(t, controlPlane(t))}
}

// newClusterEnv returns two namespaces of a control plane with its controllers. The owner does not exist yet. It will
// have the spec.
func newClusterEnv(t *testing.T, spec ...ShopSpec) *serverEnv {
	t.Helper()
	plane := cluster(t)
	env := &serverEnv{Server: ownedtest.New(t, plane), elsewhere: controlplane.Namespace(t, plane)}
	if len(spec) > 0 {
		env.spec = spec[0]
		env.Owner = env.newOwner()
	}
	return env
}

// newOwner returns a new owner, without creating it.
func (env *serverEnv) newOwner() *Shop {
	return &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"}, Spec: *env.spec.DeepCopy()}
}

var requireWaits = ownedtest.RequireWaits
