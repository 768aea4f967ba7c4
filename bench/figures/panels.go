package main

import (
	"fmt"
	"slices"
)

// panel is one chart of bars with the same unit.
type panel struct {
	title string
	bars  []bar
}

type bar struct {
	variant, label string
	values         samples
	unit           string
}

// The variants, as the benchmarks name them.
const (
	opblocks        = "opblocks"
	handWritten     = "hand-written"
	careful         = "create-or-update"
	wholeSpec       = "create-or-update-whole-spec"
	createOrPatch   = "create-or-patch"
	serverSideApply = "apply-on-every-pass"
	opblocksPods    = "opblocks-pods"
	handWrittenPods = "hand-written-pods"
	withoutEvents   = "opblocks-without-events"
	tenOfOpblocks   = "opblocks-ten-children"
	tenOfCareful    = "create-or-update-ten-children"
)

var (
	allVariants  = []string{opblocks, handWritten, careful, createOrPatch, wholeSpec, serverSideApply}
	mainVariants = []string{opblocks, handWritten, careful}
	// firstPassVariants have two children an object, or ten.
	firstPassVariants = []string{opblocks, careful, tenOfOpblocks, tenOfCareful}
	podVariants       = []string{opblocksPods, handWrittenPods}
	// convergenceVariants show as well what the events of opblocks cost: the others emit none.
	convergenceVariants = slices.Concat([]string{opblocks, withoutEvents}, allVariants[1:])
)

// labels are the variants as readers know them.
var labels = map[string]string{
	opblocks: "opblocks", handWritten: "written by hand", careful: "CreateOrUpdate, careful", createOrPatch: "CreateOrPatch, careful",
	wholeSpec: "CreateOrUpdate, whole spec", serverSideApply: "apply in every pass",
	opblocksPods: "opblocks", handWrittenPods: "written by hand", withoutEvents: "opblocks without events",
	tenOfOpblocks: "opblocks, ten children", tenOfCareful: "CreateOrUpdate, careful, ten children",
}

// The numbers of objects in the steady state, and of new objects.
var (
	steadySizes      = []int{100, 1_000, 10_000}
	convergenceSizes = []int{1_000, 10_000}
)

// The number of new objects whose requests are slow, and of objects at a restart.
const (
	firstPassSize = 200
	scaleSize     = 100_000
)

// pictures returns the charts of each picture, by the name of its file. Values that were not measured are left out.
func pictures(r *results) map[string][]panel {
	return map[string][]panel{
		"figures.svg": {
			steady(r, "A pass with nothing to do", mainVariants, 1e-3, "µs"),
			steady(r, "A pass with nothing to do, in other ways", allVariants[len(mainVariants):], 1e-6, "ms"),
			steady(r, "The same with a list of the object's pods", podVariants, 1e-3, "µs"),
		},
		"figures-convergence.svg": {
			operators(r, "Time until new objects have converged", convergenceVariants, "s", "s"),
			operators(r, "Live heap after a restart", mainVariants, "heap-MiB", "MiB"),
			operators(r, "Resident memory after a restart", mainVariants, "resident-MiB", "MiB"),
			firstPass(r, "Time until 200 new objects have converged, at 5 ms a request"),
		},
	}
}

// steady is a chart of the time of a pass with nothing to do. The factor turns nanoseconds into the unit.
func steady(r *results, title string, variants []string, factor float64, unit string) panel {
	p := panel{title: title}
	for _, size := range steadySizes {
		for _, variant := range variants {
			p.add(variant, size, r.of("SteadyState", size, variant, "ns/op").times(factor), unit)
		}
	}
	return p
}

// operators is a chart of what was measured with whole operators.
func operators(r *results, title string, variants []string, measured, unit string) panel {
	p := panel{title: title}
	for _, size := range convergenceSizes {
		for _, variant := range variants {
			p.add(variant, size, r.of("Convergence", size, variant, measured), unit)
		}
	}
	return p
}

// firstPass is a chart of first passes whose requests are slow.
func firstPass(r *results, title string) panel {
	p := panel{title: title}
	for _, variant := range firstPassVariants {
		if values := r.of("FirstPass", firstPassSize, variant, "s"); len(values) > 0 {
			p.bars = append(p.bars, bar{variant, labels[variant], values, "s"})
		}
	}
	return p
}

func (p *panel) add(variant string, size int, values samples, unit string) {
	if len(values) > 0 {
		p.bars = append(p.bars, bar{variant, fmt.Sprintf("%s objects, %s", thousands(size), labels[variant]), values, unit})
	}
}

// runs returns the least number of runs that a bar stands for.
func (p *panel) runs() int {
	least := len(p.bars[0].values)
	for _, b := range p.bars {
		least = min(least, len(b.values))
	}
	return least
}

func thousands(n int) string {
	if n < 1_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1_000, n%1_000)
}
