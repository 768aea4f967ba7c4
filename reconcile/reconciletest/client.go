package reconciletest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// NewClient returns a client of a new API server in memory, for a unit test that calls a reconciler or a function itself. The server is the
// one of [Explore]: where the fake client of controller-runtime accepts anything, it has the schemas and defaults of the kinds, server-side
// apply with field managers, UIDs and conflicts. Nothing has to be stopped.
//
// The scheme has the Go types of the kinds. The CRDs are files with custom resource definitions, or folders with such files; the kinds of
// Kubernetes are there without them. No controller and no garbage collector runs. The namespaces default and kube-system exist, others are
// created like any object. The clock is package time's. A CRD that cannot be read fails the test at once.
func NewClient(t testing.TB, scheme *runtime.Scheme, crds ...string) client.WithWatch {
	t.Helper()
	server, err := memoryserver.New(scheme, memoryserver.CRDs(crds...))
	if err != nil {
		t.Fatal(err)
	}
	return server.Client()
}
