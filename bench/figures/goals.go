package main

import (
	"fmt"
	"slices"
	"strings"
)

// goal is a value that the library is to reach.
type goal struct {
	figure string
	most   float64
	show   func(float64) string
	values []float64 // all must reach it
}

// goals returns a table of the goals beside what was measured. It has no goals for requests: these are exact, and tests
// check them.
func (t *tables) goals() string {
	rows := [][]string{{"figure", "goal", "measured", ""}}
	for _, g := range t.allGoals() {
		shown := make([]string, 0, len(g.values))
		for _, v := range g.values {
			shown = append(shown, g.show(v))
		}
		reached := "reached"
		if slices.Max(g.values) > g.most {
			reached = "**missed**"
		}
		rows = append(rows, []string{g.figure, "at most " + g.show(g.most), strings.Join(shown, ", "), reached})
	}
	return table(rows)
}

func (t *tables) allGoals() []goal {
	times := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	percent := func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
	ratios := func(ours, theirs string) (all []float64) {
		for _, size := range steadySizes {
			all = append(all, t.of("SteadyState", size, ours, "ns/op").over(t.of("SteadyState", size, theirs, "ns/op")).median())
		}
		return all
	}
	var allocations, converged, quietly []float64
	for _, size := range steadySizes {
		allocations = append(allocations, t.of("SteadyState", size, opblocks, "allocs/op").median())
	}
	for _, size := range convergenceSizes {
		converged = append(converged, t.of("Convergence", size, opblocks, "s").over(t.of("Convergence", size, careful, "s")).median())
		quietly = append(quietly, t.of("Convergence", size, withoutEvents, "s").over(t.of("Convergence", size, careful, "s")).median())
	}
	steady := ratios(opblocks, handWritten)
	return []goal{
		{"time of a pass with nothing to do beside the one written by hand, at 100, 1,000 and 10,000 objects", 0.5, times, steady},
		{"how far this ratio moves with the number of objects", 0.15, percent, []float64{slices.Max(steady)/slices.Min(steady) - 1}},
		{"the same with a step that lists the object's pods", 0.8, times, ratios(opblocksPods, handWrittenPods)},
		{"allocations of a pass with nothing to do", 15, number, allocations},
		{"time to converge without events beside careful `CreateOrUpdate`, at 1,000 and 10,000 objects", 1, times, quietly},
		{"the same with an event for each object", 1.1, times, converged},
		{"time to converge at 5 ms a request beside careful `CreateOrUpdate`, objects with two children", 0.75, times, []float64{t.firstPasses(opblocks, careful)}},
		{"the same, objects with ten children", 0.4, times, []float64{t.firstPasses(tenOfOpblocks, tenOfCareful)}},
		{"time to converge of 10,000 objects beside 1,000", 10.5, times, []float64{
			t.of("Convergence", 10_000, opblocks, "s").median() / t.of("Convergence", 1_000, opblocks, "s").median(),
		}},
		{"live heap at 10,000 objects beside the operator written by hand with the default cache", 0.75, percent, []float64{
			t.of("Convergence", 10_000, opblocks, "heap-MiB").median() / t.of("Convergence", 10_000, handWritten, "heap-MiB").median(),
		}},
		{"processor time of a restart with 100,000 objects beside the operator written by hand", 1.5, times, []float64{
			t.of("Scale", scaleSize, opblocks, "start-cpu-s").median() / t.of("Scale", scaleSize, handWritten, "start-cpu-s").median(),
		}},
		t.slowest("comparing a desired Deployment with the live one after a change", 15, "internal/compare", "Deployment"),
		t.slowest("the next due time of a schedule after a year of missed minutes", 5, "schedule", `^Due/\*_\*_\*_\*_\*/.*/Year$`),
	}
}

// firstPasses returns how long one variant takes beside another, when each request takes 5 ms in addition.
func (t *tables) firstPasses(ours, theirs string) float64 {
	return t.of("FirstPass", firstPassSize, ours, "s").over(t.of("FirstPass", firstPassSize, theirs, "s")).median()
}

// slowest is a goal in microseconds for all benchmarks of a package whose name matches a pattern.
func (t *tables) slowest(figure string, most float64, pkg, pattern string) goal {
	slowest := 0.0
	for _, b := range t.benchmarksOf(pkg, pattern) {
		slowest = max(slowest, b.values["ns/op"].median()/1e3)
	}
	return goal{figure, most, func(v float64) string { return number(v) + " µs" }, []float64{slowest}}
}
