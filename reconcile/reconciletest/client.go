package reconciletest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// NewClient returns a client of a new API server in memory, for a unit test that calls a reconciler or a function itself. It is the same
// server that [Explore] uses. The fake client of controller-runtime accepts any object. This server checks the schemas and sets the
// defaults of the kinds, has server-side apply with field managers, sets UIDs and returns conflicts. Nothing has to be stopped.
//
// The scheme has the Go types of the kinds. The CRDs are files with custom resource definitions, or folders with such files. The kinds of
// Kubernetes are served without them. No controller and no garbage collector runs. The namespaces default and kube-system exist. Others are
// created like any object. The server takes the time from package time. A CRD that cannot be read fails the test at once.
func NewClient(t testing.TB, scheme *runtime.Scheme, crds ...string) client.WithWatch {
	t.Helper()
	server, err := memoryserver.New(scheme, memoryserver.CRDs(crds...))
	if err != nil {
		t.Fatal(err)
	}
	return server.Client()
}
