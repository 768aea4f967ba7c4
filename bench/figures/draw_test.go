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
		require.NoError(t, draw(&out, panels(parsed(t))))
		require.Contains(t, out.String(), `width="400.0"`, "the longest bar of each panel")
		require.Contains(t, out.String(), `width="320.0"`, "a bar of 10/12.5 of it")
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
		require.ErrorContains(t, draw(io.Discard, panels(results{})), "no results of BenchmarkSteadyState")
	})
}
