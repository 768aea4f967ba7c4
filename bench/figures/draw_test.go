package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDraw(t *testing.T) {
	t.Run("Bars", func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, draw(&out, []panel{
			{"Time", []bar{{opblocks, "a", samples{8, 10, 12}, "s"}, {handWritten, "b", samples{20, 20, 20}, "s"}}},
			{"Nothing", nil},
		}))
		require.Contains(t, out.String(), "Time (median and range of 3 runs)")
		require.NotContains(t, out.String(), "Nothing", "a panel without bars is left out")
		require.Contains(t, out.String(), `width="420.0"`, "the longest bar of each panel")
		require.Contains(t, out.String(), `width="210.0"`, "a bar of 10/20 of it")
		require.Contains(t, out.String(), `d="M458.0 51V59M458.0 55H542.0M542.0 51V59"`, "a line from 8/20 to 12/20 of it")
		decoder := xml.NewDecoder(strings.NewReader(out.String()))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "an XML document")
		}
	})
	t.Run("NothingMeasured", func(t *testing.T) {
		require.ErrorContains(t, draw(io.Discard, nil), "no results of BenchmarkSteadyState")
	})
}
