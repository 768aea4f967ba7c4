package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// curve is one series in a chart.
type curve struct {
	name   string
	points []promql.FPoint
}

// chart draws the series of all queries of a panel over time.
func (pic *picture) chart(p *panel, area box) error {
	var curves []curve
	for i := range p.Targets {
		result, err := pic.db.between(context.Background(), pic.query(&p.Targets[i]), pic.from, pic.to, scrapesPause)
		if err != nil {
			return err
		}
		slices.SortFunc(result, func(a, b promql.Series) int { return cmp.Compare(a.Metric.String(), b.Metric.String()) })
		for _, s := range result {
			curves = append(curves, curve{p.Targets[i].legend(s.Metric.Map()), s.Floats})
		}
	}
	if len(curves) == 0 {
		pic.text(area.x+area.w/2, area.y+area.h/2, `text-anchor="middle" fill="`+faintColour+`"`, "No data")
		return nil
	}
	legend := pic.legend(curves, area)
	axes := pic.axes(p, curves, box{area.x, area.y, area.w, area.h - legend})
	for i, c := range curves {
		fmt.Fprintf(pic, `<path d="%s" stroke="%s" stroke-width="1.4" fill="none" stroke-linejoin="round"/>`+"\n", axes.path(c.points), colours[i%len(colours)])
	}
	return nil
}

// legend draws the names of the curves at the bottom, and returns its height. If there is not enough space, it draws the number of the
// other names.
func (pic *picture) legend(curves []curve, area box) (height float64) {
	const lineHeight, most, mark = 15, 3, 16
	type entry struct {
		x    float64
		line int
	}
	var entries []entry
	x, row := area.x, 0
	for _, c := range curves {
		width := mark + float64(len([]rune(c.name)))*widthOfLetter + 10
		if x+width > area.x+area.w && x > area.x {
			x, row = area.x, row+1
		}
		if row == most {
			break
		}
		entries = append(entries, entry{x, row})
		x += width
	}
	lines := entries[len(entries)-1].line + 1
	top := area.y + area.h - float64(lines*lineHeight) + 12
	for i, e := range entries {
		y := top + float64(e.line*lineHeight)
		name := curves[i].name
		if i == len(entries)-1 && i < len(curves)-1 {
			name = fmt.Sprintf("and %d more", len(curves)-i)
		} else {
			fmt.Fprintf(pic, `<path d="M%.0f %.0fh12" stroke="%s" stroke-width="3"/>`, e.x, y-3, colours[i%len(colours)])
		}
		pic.text(e.x+mark, y, `font-size="11"`, "%s", shorten(name, int((area.w-mark)/widthOfLetter)))
	}
	return float64(lines*lineHeight) + 4
}

// axes is the part of a chart in which values are drawn over time.
type axes struct {
	box
	from, to time.Time
	most     float64
}

// axes draws the scales of a chart, from zero to the largest value.
func (pic *picture) axes(p *panel, curves []curve, area box) axes {
	const left, bottom, ticks = 52, 18, 4
	most := 0.0
	for _, c := range curves {
		for _, point := range c.points {
			if !math.IsNaN(point.F) && !math.IsInf(point.F, 0) {
				most = max(most, point.F)
			}
		}
	}
	if p.FieldConfig.Defaults.Max != nil {
		most = *p.FieldConfig.Defaults.Max
	}
	step := niceStep(cmp.Or(most, 1)/ticks, p.FieldConfig.Defaults.Unit, p.FieldConfig.Defaults.Decimals)
	a := axes{box{area.x + left, area.y + 4, area.w - left, area.h - bottom - 4}, pic.from, pic.to, step * math.Ceil(cmp.Or(most, 1)/step-1e-9)}
	for v := 0.0; v <= a.most+step/2; v += step {
		y := a.valueAt(v)
		fmt.Fprintf(pic, `<path d="M%.0f %.1fh%.0f" stroke="%s"/>`, a.x, y, a.w, ruleColour)
		pic.text(a.x-6, y+4, `font-size="10" text-anchor="end" fill="`+faintColour+`"`, "%s", p.format(v))
	}
	every := 30 * time.Second
	for a.w/(float64(a.to.Sub(a.from))/float64(every)) < 44 {
		every *= 2
	}
	for at := pic.from; !at.After(pic.to); at = at.Add(every) {
		minutes, seconds := int(at.Sub(pic.from).Minutes()), int(at.Sub(pic.from).Seconds())%60
		pic.text(a.timeAt(at.UnixMilli()), a.y+a.h+14, `font-size="10" text-anchor="middle" fill="`+faintColour+`"`, "%d:%02d", minutes, seconds)
	}
	return a
}

// niceStep returns the smallest step of a scale that is at least as large as least: 1, 2 or 5 times a power of ten, or of two for bytes.
func niceStep(least float64, unit string, decimals *int) float64 {
	scale, base := 1.0, 10.0
	if unit == "bytes" {
		scale = 1 << 20
	}
	power := math.Pow(base, math.Floor(math.Log10(least/scale)))
	for _, factor := range []float64{1, 2, 5, 10} {
		step := factor * power * scale
		if step >= least*(1-1e-9) && (decimals == nil || *decimals > 0 || step >= 1) {
			return step
		}
	}
	return 1
}

// valueAt returns the y coordinate of a value. The conversion to float64 rounds the product. Otherwise some processors would fuse the
// multiplication with the subtraction, and the picture would differ.
func (a axes) valueAt(v float64) float64 { return a.y + a.h - float64(v/a.most*a.h) }

func (a axes) timeAt(milliseconds int64) float64 {
	return a.x + float64(float64(milliseconds-a.from.UnixMilli())/float64(a.to.Sub(a.from).Milliseconds())*a.w)
}

// path returns the points of a curve, with gaps where a sample is missing or not a number.
func (a axes) path(points []promql.FPoint) string {
	var b strings.Builder
	last := int64(math.MinInt64 / 2)
	for _, p := range points {
		if math.IsNaN(p.F) || math.IsInf(p.F, 0) {
			continue
		}
		command := "L"
		if p.T-last > scrapesPause.Milliseconds() {
			command = "M"
		}
		last = p.T
		fmt.Fprintf(&b, "%s%.1f %.1f", command, a.timeAt(p.T), a.valueAt(min(p.F, a.most)))
	}
	return b.String()
}
