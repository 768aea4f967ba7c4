package main

import "fmt"

// panel is one chart of bars with the same unit.
type panel struct {
	title string
	bars  []bar
}

type bar struct {
	variant, label string
	value          float64
	unit           string
}

// variants are the ways to write the operator, in the order of the picture.
var variants = []string{"opblocks", "hand-written", "create-or-update"}

// panels returns the charts of the picture. Values that were not measured are left out.
func panels(r results) []panel {
	steady := panel{title: "A pass with nothing to do, by the number of objects in the namespace"}
	for _, size := range []string{"100", "1000", "10000"} {
		for _, variant := range variants {
			if ns, ok := r["SteadyState/"+size+"/side-by-side"]["ns/"+variant]; ok {
				steady.bars = append(steady.bars, bar{variant, size + " objects, " + variant, ns / 1000, "µs"})
			}
		}
	}
	converge := panel{title: "Time until the children of new objects are created"}
	memory := panel{title: "Live heap per object with its children, after a restart"}
	for _, size := range []string{"1000", "10000"} {
		for _, variant := range variants {
			values := r[fmt.Sprintf("Convergence/%s/%s", size, variant)]
			if s, ok := values["s"]; ok {
				converge.bars = append(converge.bars, bar{variant, size + " objects, " + variant, s, "s"})
			}
			if kib, ok := values["KiB/object"]; ok {
				memory.bars = append(memory.bars, bar{variant, size + " objects, " + variant, kib, "KiB"})
			}
		}
	}
	return []panel{steady, converge, memory}
}
