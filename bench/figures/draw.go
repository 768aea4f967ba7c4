package main

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
)

// Lengths in the units of the picture.
const (
	width, labels, longest     = 760, 250, 400
	row, thick, title, between = 22, 14, 30, 18
)

var colours = map[string]string{"opblocks": "#2563eb", "hand-written": "#94a3b8", "create-or-update": "#cbd5e1"}

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

// draw writes the panel at height y, and returns the height of the next panel.
func (p *panel) draw(w io.Writer, y int) int {
	fmt.Fprintf(w, `<text x="16" y="%d" font-weight="bold">%s</text>`+"\n", y+14, html.EscapeString(p.title))
	y += title
	most := 0.0
	for _, b := range p.bars {
		most = max(most, b.value)
	}
	for _, b := range p.bars {
		long := b.value / most * longest
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labels-8, y+12, html.EscapeString(b.label))
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, labels, y, long, thick, colours[b.variant])
		fmt.Fprintf(w, `<text x="%.1f" y="%d">%.3g %s</text>`+"\n", labels+long+6, y+12, b.value, b.unit)
		y += row
	}
	return y + between
}
