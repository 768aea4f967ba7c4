package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// These are lengths in units of the picture. Grafana has 24 columns.
const (
	column, line  = 44, 30
	gap, inside   = 6, 10
	titleHeight   = 26
	widthOfLetter = 6.1 // roughly the width of a small letter
)

const (
	textColour  = "#0f172a"
	faintColour = "#64748b"
	ruleColour  = "#e2e8f0"
)

// colours of the series of a panel, in their order.
var colours = []string{"#2563eb", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#06b6d4", "#84cc16", "#ec4899", "#64748b", "#a16207"}

// namedColours are the colours of thresholds, by their names.
var namedColours = map[string]string{"red": "#dc2626", "orange": "#d97706", "green": "#059669", "blue": "#2563eb", "text": textColour}

// picture draws the panels of a dashboard with the samples of a database. The panels have the same positions as in Grafana.
type picture struct {
	io.Writer
	dashboard *dashboard
	db        *database
	from, to  time.Time
}

// draw returns the picture as SVG. It returns an error if a query fails.
func draw(d *dashboard, db *database) ([]byte, error) {
	height := 0
	for _, p := range d.Panels {
		height = max(height, (p.GridPos.Y+p.GridPos.H)*line)
	}
	var b bytes.Buffer
	first, last := db.span()
	pic := &picture{&b, d, db, first.Add(8 * scrapesPause), last} // rates need some scrapes before the first value
	fmt.Fprintf(pic, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="%s">`+"\n",
		24*column+gap, height+gap, textColour)
	fmt.Fprintln(pic, `<rect width="100%" height="100%" fill="#f1f5f9"/>`)
	for _, p := range d.Panels {
		if err := pic.panel(&p); err != nil {
			return nil, fmt.Errorf("panel %q: %w", p.Title, err)
		}
	}
	fmt.Fprintln(pic, "</svg>")
	return b.Bytes(), nil
}

func (pic *picture) text(x, y float64, attributes, format string, args ...any) {
	fmt.Fprintf(pic, `<text x="%.0f" y="%.0f" %s>%s</text>`+"\n", x, y, attributes, html.EscapeString(fmt.Sprintf(format, args...)))
}

func (pic *picture) panel(p *panel) error {
	x, y := float64(p.GridPos.X*column+gap), float64(p.GridPos.Y*line+gap)
	w, h := float64(p.GridPos.W*column-gap), float64(p.GridPos.H*line-gap)
	if p.Type == "row" {
		pic.text(x+2, y+17, `font-weight="bold"`, "%s", p.Title)
		return nil
	}
	fmt.Fprintf(pic, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="3" fill="#ffffff" stroke="%s"/>`+"\n", x, y, w, h, ruleColour)
	pic.text(x+inside, y+18, "", "%s", p.Title)
	area := box{x + inside, y + titleHeight, w - 2*inside, h - titleHeight - inside}
	switch p.Type {
	case "stat":
		return pic.stat(p, area)
	case "table":
		return pic.table(p, area)
	case "timeseries":
		return pic.chart(p, area)
	}
	return fmt.Errorf("panels of type %s cannot be drawn", p.Type)
}

// box is a rectangle in the picture.
type box struct{ x, y, w, h float64 }

func (pic *picture) query(t *panelTarget) string {
	return substitute(t.Expr, pic.dashboard.everything(), scrapesPause)
}

// stat draws one number.
func (pic *picture) stat(p *panel, area box) error {
	result, err := pic.db.at(context.Background(), pic.query(&p.Targets[0]), pic.to)
	if err != nil {
		return err
	}
	shown, colour := "No data", faintColour
	if len(result) > 0 {
		shown, colour = p.format(result[0].F), textColour
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value == nil || result[0].F >= *step.Value {
				colour = namedColours[step.Color]
			}
		}
	}
	pic.text(area.x+area.w/2, area.y+area.h/2+14, fmt.Sprintf(`font-size="34" text-anchor="middle" fill="%s"`, colour), "%s", shown)
	return nil
}

// table draws as many rows of a table as fit.
func (pic *picture) table(p *panel, area box) error {
	result, err := pic.db.at(context.Background(), pic.query(&p.Targets[0]), pic.to)
	if err != nil {
		return err
	}
	columns := p.columns()
	slices.SortFunc(result, func(a, b promql.Sample) int { return cmp.Compare(a.Metric.String(), b.Metric.String()) })
	const rowHeight = 22
	widths := make([]float64, len(columns))
	cell := func(row int, column string) string {
		if column == "Value" {
			return p.format(result[row].F)
		}
		return result[row].Metric.Get(column)
	}
	total := 0.0
	for i, c := range columns {
		longest := len(p.heading(c))
		for row := range result {
			longest = max(longest, len(cell(row, c)))
		}
		widths[i] = float64(longest)*6.4 + 14
		total += widths[i]
	}
	if widest := slices.Index(widths, slices.Max(widths)); total > area.w {
		widths[widest] -= total - area.w
	}
	x := area.x
	for i, c := range columns {
		width := widths[i]
		letters := int((width - 8) / 6.2)
		pic.text(x, area.y+14, `font-size="12" fill="`+faintColour+`"`, "%s", p.heading(c))
		for row := range min(len(result), int(area.h/rowHeight)-1) {
			pic.text(x, area.y+14+rowHeight*float64(row+1), `font-size="12"`, "%s", shorten(cell(row, c), letters))
		}
		x += width
	}
	fmt.Fprintf(pic, `<path d="M%.0f %.0fh%.0f" stroke="%s"/>`+"\n", area.x, area.y+20, area.w, ruleColour)
	return nil
}

// columns returns the columns of a table that are shown, in their order.
func (p *panel) columns() []string {
	options := p.Transformations[0].Options
	shown := slices.DeleteFunc(slices.Collect(maps.Keys(options.IndexByName)), func(c string) bool { return options.ExcludeByName[c] })
	slices.SortFunc(shown, func(a, b string) int { return options.IndexByName[a] - options.IndexByName[b] })
	return shown
}

func (p *panel) heading(column string) string {
	return cmp.Or(p.Transformations[0].Options.RenameByName[column], column)
}

func shorten(s string, letters int) string {
	if runes := []rune(s); len(runes) > letters && letters > 1 {
		return string(runes[:letters-1]) + "…"
	}
	return s
}

// format returns a value in the unit of the panel.
func (p *panel) format(v float64) string {
	switch p.FieldConfig.Defaults.Unit {
	case "percentunit":
		return number(v*100, 1) + " %"
	case "ops":
		return number(v, 2) + "/s"
	case "reqps":
		return number(v, 2) + "/s"
	case "bytes":
		return number(v/(1<<20), 0) + " MiB"
	case "s":
		switch {
		case v == 0:
			return "0"
		case v < 1e-3:
			return number(v*1e6, 0) + " µs"
		case v < 1:
			return number(v*1e3, 0) + " ms"
		}
		return number(v, 1) + " s"
	}
	return number(v, 2)
}

// number returns a number with at most these decimals.
func number(v float64, decimals int) string {
	scale := math.Pow10(decimals)
	return fmt.Sprint(math.Round(v*scale) / scale)
}
