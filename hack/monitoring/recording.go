package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
)

// A recorded run is a text file. The first line has the time of the first scrape. Each further line has a series, with a value for each
// scrape. Values have the notation of Prometheus' rule tests: 1x3 is four times 1, _ is a missing sample, and stale is the end of the
// series.
const recordingHeader = "# Metrics of the example memcached, recorded by `go run . -record`. The first scrape, a scrape each second: "

// writeRun writes the series of these metrics to a file.
func writeRun(file string, db *database, metrics map[string]bool) error {
	first, last := db.span()
	var b bytes.Buffer
	fmt.Fprintln(&b, recordingHeader+first.UTC().Format(time.RFC3339))
	scrapes := int(math.Round(float64(last.Sub(first))/float64(scrapesPause))) + 1
	for _, s := range db.find() {
		if metrics[s.Metric.Get(model.MetricNameLabel)] {
			fmt.Fprintln(&b, s.Metric.String(), sequence(s, first, scrapes))
		}
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// sequence returns the values of a series at each scrape.
func sequence(s promql.Series, first time.Time, scrapes int) string {
	values := make([]string, scrapes)
	for i := range values {
		values[i] = "_"
	}
	for _, p := range s.Floats {
		i := int(math.Round(float64(time.UnixMilli(p.T).Sub(first)) / float64(scrapesPause)))
		values[i] = strconv.FormatFloat(p.F, 'g', -1, 64)
		if value.IsStaleNaN(p.F) {
			values[i] = "stale"
		}
	}
	var parts []string
	for i := 0; i < scrapes; {
		n := 1
		for i+n < scrapes && values[i+n] == values[i] {
			n++
		}
		switch {
		case n == 1 || values[i] == "stale": // stale values are never repeated
			parts = append(parts, values[i])
		case values[i] == "_":
			parts = append(parts, fmt.Sprintf("_x%d", n))
		default:
			parts = append(parts, fmt.Sprintf("%sx%d", values[i], n-1))
		}
		i += n
	}
	return strings.Join(parts, " ")
}

// readRun reads a recorded run.
func readRun(file string) (*database, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	header, ok := strings.CutPrefix(lines.Text(), recordingHeader)
	start, err := time.Parse(time.RFC3339, header)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s: the first line is no time: record the run again", file)
	}
	db := newDatabase()
	for lines.Scan() {
		if err := db.load(lines.Text(), start, scrapesPause); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return db, lines.Err()
}

// load adds a series in the notation of Prometheus' rule tests.
func (db *database) load(series string, start time.Time, interval time.Duration) error {
	l, values, err := promQL.ParseSeriesDesc(series)
	if err != nil {
		return fmt.Errorf("%.80s: %w", series, err)
	}
	for i, v := range values {
		if !v.Omitted {
			db.add(l, start.Add(time.Duration(i)*interval), v.Value)
		}
	}
	return nil
}
