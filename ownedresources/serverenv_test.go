package ownedresources

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// The control planes of the tests. Only the tests write to the objects of controlPlane. On cluster the controllers of
// Kubernetes run.
var (
	controlPlane = controlplane.Shared(controlplane.Options{CRDs: []string{shopsFile}})
	cluster      = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"../internal/owned/testkinds"}})
)

// serverEnv is a namespace of an API server with a Shop as the owner, for sets of children, also in an operator.
type serverEnv struct {
	*ownedtest.Server
	elsewhere string   // another namespace; only of newClusterEnv
	spec      ShopSpec // what every new owner asks for
}

// newEnvInMemory returns a server in memory, for what depends on the set alone. The owner exists.
func newEnvInMemory(t *testing.T) *serverEnv {
	t.Helper()
	return &serverEnv{Server: ownedtest.NewInMemory(t, shopsFile)}
}

// newServerEnv returns a namespace of a real API server in which no controller writes. The owner exists.
func newServerEnv(t *testing.T) *serverEnv {
	t.Helper()
	return &serverEnv{Server: ownedtest.NewWithOwner(t, controlPlane(t))}
}

// newClusterEnv returns two namespaces of a control plane with its controllers. The owner does not exist yet; spec
// is what it asks for.
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

// newOwner returns an owner that does not exist yet.
func (env *serverEnv) newOwner() *Shop {
	return &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"}, Spec: *env.spec.DeepCopy()}
}

var requireWaits = ownedtest.RequireWaits
