package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// output returns what a run of all benchmarks prints: their lines among others. Each was run three times.
func output() string {
	var out strings.Builder
	for _, line := range []string{"date: 2026-11-22", "go: 1.26.0", "kube-apiserver: 1.36.3", "etcd: 3.6.8", "goos: linux", "cpu: AMD EPYC"} {
		fmt.Fprintln(&out, line)
	}
	line := func(name, values string) {
		for round := range 3 {
			fmt.Fprintf(&out, "Benchmark%s/round=%d-2 \t 100 \t %s\n", name, round+1, strings.ReplaceAll(values, "#", fmt.Sprint(round)))
		}
	}
	fmt.Fprintln(&out, "pkg: example.com/opblocks/bench")
	fmt.Fprintln(&out, "bench: create 100 sites: 2 s")
	for _, size := range steadySizes {
		for i, variant := range slices.Concat(allVariants, podVariants) {
			line(fmt.Sprintf("SteadyState/objects=%d/variant=%s", size, variant), fmt.Sprintf("%d00# ns/op \t 500 B/op \t 10 allocs/op \t 0 requests/op", 4+i))
		}
		for _, variant := range []string{"with-address", "headless"} {
			line(fmt.Sprintf("CreateService/objects=%d/variant=%s", size, variant), "1000000 ns/op")
		}
	}
	for _, size := range convergenceSizes {
		for _, variant := range slices.Concat(allVariants, []string{withoutEvents}) {
			line(fmt.Sprintf("Convergence/objects=%d/variant=%s", size, variant), "5.# s \t 1.5 ms/POST \t 2 ms/status \t 2 POST/object \t 0 PUT+PATCH/object \t 1.# status/object \t 1 events/object \t"+
				"0 restart-requests \t 80.# heap-MiB \t 8 heap-KiB/object \t 140 resident-MiB \t 280 peak-MiB")
		}
	}
	for _, variant := range firstPassVariants {
		line(fmt.Sprintf("FirstPass/objects=%d/variant=%s", firstPassSize, variant), "3.# s")
	}
	for _, variant := range []string{opblocks, handWritten} {
		line(fmt.Sprintf("Scale/objects=%d/variant=%s", scaleSize, variant), "20 start-cpu-s \t 12 start-s \t 7 KiB/object \t 2000 start-peak-MiB")
	}
	for _, size := range []int{100, 1_000} {
		for _, form := range []string{"one-owner", "one-child-each"} {
			line(fmt.Sprintf("List/objects=%d/variant=%s", size, form), "106 ms/convergence \t 264 ns/quiet-child")
		}
	}
	fmt.Fprintln(&out, "pkg: example.com/opblocks/internal/compare")
	line("CoversDeployment", "800 ns/op \t 0 B/op \t 0 allocs/op")
	fmt.Fprintln(&out, "pkg: example.com/opblocks/schedule")
	line("Due/*_*_*_*_*/UTC/Year", "6000 ns/op \t 0 B/op \t 0 allocs/op")
	fmt.Fprintln(&out, "PASS")
	return out.String()
}

func parsed(t *testing.T, text string) *results {
	t.Helper()
	r, err := parse(strings.NewReader(text))
	require.NoError(t, err)
	return r
}
