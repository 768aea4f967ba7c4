package main

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
)

// Lengths in the units of the picture.
const (
	width, left, longest             = 820, 290, 420
	row, thick, title, between, tick = 22, 14, 30, 18, 8
)

var colours = map[string]string{
	opblocks: "#2563eb", opblocksPods: "#2563eb", withoutEvents: "#93c5fd",
	handWritten: "#94a3b8", handWrittenPods: "#94a3b8", careful: "#cbd5e1",
	createOrPatch: "#e2e8f0", wholeSpec: "#e2e8f0", serverSideApply: "#e2e8f0",
}

// draw writes the panels that have bars, one below the other. The bars of a panel share one scale. It returns an error if no
// panel has bars.
func draw(out io.Writer, panels []panel) error {
	height := between
	for _, p := range panels {
		if len(p.bars) > 0 {
			height += title + len(p.bars)*row + between
		}
	}
	if height == between {
		return errors.New("the input has no results of BenchmarkSteadyState or BenchmarkConvergence")
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#0f172a">`+"\n", width, height)
	fmt.Fprintln(w, `<rect width="100%" height="100%" fill="#ffffff"/>`)
	y := between
	for _, p := range panels {
		if len(p.bars) > 0 {
			y = p.draw(w, y)
		}
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

// draw writes the panel at height y, and returns the height of the next panel. A bar is the median of its runs, and the thin
// line across its end goes from the lowest to the highest run.
func (p *panel) draw(w io.Writer, y int) int {
	heading := fmt.Sprintf("%s (median and range of %d runs)", p.title, p.runs())
	fmt.Fprintf(w, `<text x="16" y="%d" font-weight="bold">%s</text>`+"\n", y+14, html.EscapeString(heading))
	y += title
	most := 0.0
	for _, b := range p.bars {
		most = max(most, slices.Max(b.values))
	}
	at := func(value float64) float64 { return left + value/most*longest }
	for _, b := range p.bars {
		median, lowest, highest := b.values.median(), slices.Min(b.values), slices.Max(b.values)
		middle := y + thick/2
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+12, html.EscapeString(b.label))
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, left, y, at(median)-left, thick, colours[b.variant])
		fmt.Fprintf(w, `<path d="M%.1f %dV%dM%.1f %dH%.1fM%.1f %dV%d" stroke="#0f172a" fill="none"/>`,
			at(lowest), middle-tick/2, middle+tick/2, at(lowest), middle, at(highest), at(highest), middle-tick/2, middle+tick/2)
		fmt.Fprintf(w, `<text x="%.1f" y="%d">%s %s</text>`+"\n", at(highest)+6, y+12, number(median), b.unit)
		y += row
	}
	return y + between
}
