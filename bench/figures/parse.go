package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// results maps a benchmark's name, such as "SteadyState/100/side-by-side", to its values by unit, such as "ns/opblocks".
type results map[string]map[string]float64

var processors = regexp.MustCompile(`-\d+$`)

// parse reads the lines in the format of https://go.dev/design/14313-benchmark-format, and ignores all others. Of a benchmark
// that was run several times it keeps the last run. It returns an error if a value is not a number.
func parse(in io.Reader) (results, error) {
	found := results{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			values[fields[i+1]] = value
		}
		found[processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")] = values
	}
	return found, lines.Err()
}
