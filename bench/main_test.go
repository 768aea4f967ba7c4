package bench

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// Environment variables make a run shorter: BENCH_SIZES=50 BENCH_ROUNDS=2 go test -run '^$' -bench Convergence -benchtime 1x .
var (
	sizesVariable  = cmp.Or(os.Getenv("BENCH_SIZES"), "100,1000,10000") // numbers of objects
	roundsVariable = cmp.Or(os.Getenv("BENCH_ROUNDS"), "5")             // how often each variant is measured
	// BENCH_HEAP_PROFILE is the file for a heap profile of the last operator that was restarted, and
	// BENCH_APISERVER_PROFILE is the file for a CPU profile of kube-apiserver during the last convergence.
	profileVariable = os.Getenv("BENCH_APISERVER_PROFILE")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	if os.Getenv(operatorVariable) != "" {
		os.Exit(runOperatorProcess())
	}
	if len(os.Args) == 6 && os.Args[1] == scaleCommand {
		os.Exit(runScaleServer())
	}
	os.Exit(m.Run())
}

// controlPlane starts a control plane without controllers: only the measured code writes.
var controlPlane = controlplane.Shared(controlplane.Options{})

// sizes returns the numbers of objects to measure with: at least this many, unless BENCH_SIZES has others.
func sizes(b *testing.B, least int) (all []int) {
	b.Helper()
	for text := range strings.SplitSeq(sizesVariable, ",") {
		size, err := strconv.Atoi(text)
		must(b, err)
		if size >= least || os.Getenv("BENCH_SIZES") != "" {
			all = append(all, size)
		}
	}
	return all
}

// inTurns runs a benchmark of each variant, then of each again, and so on: whatever slows the machine down for a while
// does so for all of them. The result of each run has a line of its own.
func inTurns(b *testing.B, variants []string, run func(b *testing.B, variant string)) {
	b.Helper()
	rounds, err := strconv.Atoi(roundsVariable)
	must(b, err)
	for round := range rounds {
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
