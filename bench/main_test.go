package bench

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

// Two flags are for a short run: go test -bench Convergence -benchtime 1x . -args -sizes 50 -rounds 2
var (
	sizesFlag   = flag.String("sizes", "100,1000,10000", "measure these numbers of objects")
	roundsFlag  = flag.Int("rounds", 5, "measure each variant this many times, in turns with the others")
	profileFlag = flag.String("apiserver-profile", "", "write a CPU profile of kube-apiserver during the last convergence to this file")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	if os.Getenv(operatorVariable) != "" {
		os.Exit(runOperatorProcess())
	}
	flag.Parse()
	os.Exit(m.Run())
}

// controlPlane starts a control plane without controllers: only the measured code writes.
var controlPlane = controlplanetest.Shared()

// sizes returns the numbers of objects to measure with, of those from least on.
func sizes(b *testing.B, least int) (all []int) {
	b.Helper()
	for text := range strings.SplitSeq(*sizesFlag, ",") {
		size, err := strconv.Atoi(text)
		must(b, err)
		if size >= least || *sizesFlag != flag.Lookup("sizes").DefValue {
			all = append(all, size)
		}
	}
	return all
}

// inTurns runs a benchmark of each variant, then of each again, and so on: whatever slows the machine down for a while
// does so for all of them. The result of each run has a line of its own.
func inTurns(b *testing.B, variants []string, run func(b *testing.B, variant string)) {
	b.Helper()
	for round := range *roundsFlag {
		for _, variant := range variants {
			b.Run(fmt.Sprintf("variant=%s/round=%d", variant, round+1), func(b *testing.B) { run(b, variant) })
		}
	}
}

// progress prints what is being done. The results themselves are printed to the standard output.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
