package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const printed = `goos: linux
bench: create 100 sites: 2 s
BenchmarkSteadyState/100/opblocks-2         	  218100	     14855 ns/op	    7171 B/op	      35 allocs/op
BenchmarkSteadyState/100/side-by-side-2     	    2545	     10000 ns/hand-written	     12500 ns/opblocks	         1.250 ratio
BenchmarkConvergence/1000/opblocks-2        	       1	15436562251 ns/op	        7.7 KiB/object	        15.44 s
PASS
`

func TestPanels(t *testing.T) {
	r, err := parse(strings.NewReader(printed))
	require.NoError(t, err)
	all := panels(r)
	require.Equal(t, []bar{
		{"opblocks", "100 objects, opblocks", 12.5, "µs"},
		{"hand-written", "100 objects, hand-written", 10, "µs"},
	}, all[0].bars, "what was not measured is left out")
	require.Equal(t, []bar{{"opblocks", "1000 objects, opblocks", 15.44, "s"}}, all[1].bars)
	require.Equal(t, []bar{{"opblocks", "1000 objects, opblocks", 7.7, "KiB"}}, all[2].bars)
}

func TestPicture(t *testing.T) {
	r, err := parse(strings.NewReader(printed))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, draw(&out, panels(r)))
	require.Contains(t, out.String(), `width="400.0"`, "the longest bar of each panel")
	require.Contains(t, out.String(), `width="320.0"`, "and one of 10/12.5 of it")
	decoder := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "an XML document")
	}
}

func TestNothingMeasured(t *testing.T) {
	require.ErrorContains(t, draw(io.Discard, panels(results{})), "no results of BenchmarkSteadyState")
	_, err := parse(strings.NewReader("BenchmarkX-2 1 much s\n"))
	require.ErrorContains(t, err, "BenchmarkX-2 1 much s")
}
