package operatortest

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	ctrl "sigs.k8s.io/controller-runtime"
)

// parallel is the number of tests that run at the same time. It may exceed the number of processors, because the tests wait for
// other processes most of the time.
const parallel = "6"

// Main runs the tests of a package; TestMain calls it. They fail if a stopped operator leaves a goroutine behind. The functions
// clean are called at the end.
func Main(m *testing.M, clean ...func()) {
	ctrl.SetLogger(logr.Discard()) // for logs that belong to no test
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(patiently{m}, append(leftovers,
		goleak.Cleanup(func(code int) {
			for _, c := range clean {
				c()
			}
			os.Exit(code)
		}))...)
}

// leftovers are the goroutines that may be left.
var leftovers = []goleak.Option{
	// The connections of the tests' own clients.
	goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
	// client-go's metadata client leaves one behind if a watch is stopped while an event arrives.
	goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
	// controller-runtime's cache of several namespaces waits for ever for an informer that never syncs, such as one whose list is
	// forbidden, also after it was stopped.
	goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformer.func1"),
	goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformerHandlerRegistration.func1"),
	// The control planes that the tests of the package share live as long as the process.
	goleak.IgnoreAnyFunction("github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor.(*Supervisor).receive"),
}

// patiently runs the tests of a package, and then waits until the goroutines have ended. goleak itself waits for less than a
// second, which is over on a busy machine.
type patiently struct{ *testing.M }

func (p patiently) Run() int {
	code := p.M.Run()
	for began := time.Now(); code == 0 && time.Since(began) < Patience && goleak.Find(leftovers...) != nil; {
		pause(context.Background(), interval)
	}
	return code
}
