package operatortest

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	ctrl "sigs.k8s.io/controller-runtime"
)

// atOnce is how many tests run at once: more than there are processors, because they wait for others' processes most
// of the time.
const atOnce = "6"

// Main runs the tests of a package, to be called by its TestMain. They fail if a goroutine is left of an operator that
// was stopped. At the end clean is called.
func Main(m *testing.M, clean ...func()) {
	ctrl.SetLogger(logr.Discard()) // what is logged without a logger of its own belongs to no test
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"), // of the tests' own clients
		// client-go's metadata client leaves one behind for a watch that is stopped while an event is on its way.
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		// Of the control planes that the package's tests share, which live as long as the process.
		goleak.IgnoreAnyFunction("github.com/opblocks/opblocks/internal/controlplane/supervisor.(*Supervisor).receive"),
		goleak.Cleanup(func(code int) {
			for _, c := range clean {
				c()
			}
			os.Exit(code)
		}))
}
