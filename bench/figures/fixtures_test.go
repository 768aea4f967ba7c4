package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// output is what go test prints: lines of benchmarks among others.
const output = `goos: linux
bench: create 100 sites: 2 s
BenchmarkSteadyState/100/opblocks-2         	  218100	     14855 ns/op	    7171 B/op	      35 allocs/op
BenchmarkSteadyState/100/side-by-side-2     	    2545	     10000 ns/hand-written	     12500 ns/opblocks	         1.250 ratio
BenchmarkConvergence/1000/opblocks-2        	       1	15436562251 ns/op	        7.7 KiB/object	        15.44 s
PASS
`

func parsed(t *testing.T) results {
	t.Helper()
	r, err := parse(strings.NewReader(output))
	require.NoError(t, err)
	return r
}
