package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// results are what the benchmarks have measured.
type results struct {
	config     map[string]string // lines such as "cpu: …", and "processors"
	benchmarks []*benchmark      // in the order in which they ran
}

// benchmark is one benchmark with the values of all its runs.
type benchmark struct {
	pkg, name string             // name is such as "SteadyState/objects=100/variant=opblocks"
	values    map[string]samples // by unit, such as "ns/op"
}

var (
	processors = regexp.MustCompile(`-(\d+)$`)
	round      = regexp.MustCompile(`/round=\d+`)
	configLine = regexp.MustCompile(`^([a-z][\w-]*): (.+)$`)
)

// parse reads the lines in the format of https://go.dev/design/14313-benchmark-format, and ignores all others. Lines that differ
// in the round only, and equal lines, are runs of one benchmark. parse returns an error if a value is not a number.
func parse(in io.Reader) (*results, error) {
	r := &results{config: map[string]string{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if setting := configLine.FindStringSubmatch(lines.Text()); setting != nil {
			r.config[setting[1]] = strings.TrimSpace(setting[2])
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if suffix := processors.FindStringSubmatch(name); suffix != nil {
			name, r.config["processors"] = strings.TrimSuffix(name, suffix[0]), suffix[1]
		}
		found := r.at(r.config["pkg"], round.ReplaceAllString(name, ""))
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			found.values[fields[i+1]] = append(found.values[fields[i+1]], value)
		}
	}
	return r, lines.Err()
}

// at returns the benchmark of this name, which it adds if there is none.
func (r *results) at(pkg, name string) *benchmark {
	for _, b := range r.benchmarks {
		if b.pkg == pkg && b.name == name {
			return b
		}
	}
	b := &benchmark{pkg: pkg, name: name, values: map[string]samples{}}
	r.benchmarks = append(r.benchmarks, b)
	return b
}

// of returns the values that a benchmark has measured with objects of this number and a variant, or nil.
func (r *results) of(name string, objects int, variant, unit string) samples {
	full := fmt.Sprintf("%s/objects=%d/variant=%s", name, objects, variant)
	for _, b := range r.benchmarks {
		if b.name == full {
			return b.values[unit]
		}
	}
	return nil
}

// named returns the benchmarks of a package, such as "internal/compare", whose name matches a pattern.
func (r *results) named(pkg string, pattern *regexp.Regexp) (found []*benchmark) {
	for _, b := range r.benchmarks {
		if strings.HasSuffix(b.pkg, "/"+pkg) && pattern.MatchString(b.name) {
			found = append(found, b)
		}
	}
	return found
}
