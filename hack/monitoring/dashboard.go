package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// dashboard has the parts of a Grafana dashboard that this program reads.
type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type, AllValue string
			Query                json.RawMessage // a string, or an object with the field query
		}
	}
}

type panel struct {
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Decimals   *int
			Max        *float64
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
	}
	Transformations []struct {
		Options struct {
			ExcludeByName map[string]bool
			IndexByName   map[string]int
			RenameByName  map[string]string
		}
	}
	Targets []panelTarget
}

type panelTarget struct {
	Expr, LegendFormat string
	Instant            bool
}

func loadDashboard(file string) (*dashboard, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &dashboard{}
	if err := json.Unmarshal(content, d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// everything returns the values of the variables if the user has selected all values of each.
func (d *dashboard) everything() map[string]string {
	values := map[string]string{}
	for _, v := range d.Templating.List {
		values[v.Name] = v.AllValue
	}
	return values
}

var variable = regexp.MustCompile(`\$(\w+|\{\w+\})`)

// substitute replaces the variables in a query, as Grafana does. Rates are calculated over four scrapes.
func substitute(query string, values map[string]string, scrapes time.Duration) string {
	return variable.ReplaceAllStringFunc(query, func(name string) string {
		name = strings.Trim(name, "${}")
		if name == "__rate_interval" {
			return (4 * scrapes).String()
		}
		if v, ok := values[name]; ok {
			return v
		}
		return "$" + name
	})
}

// queries returns the queries of all panels, with all values of the variables selected.
func (d *dashboard) queries() (all []string) {
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, substitute(t.Expr, d.everything(), scrapesPause))
		}
	}
	return all
}

var labelOfLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legend returns the name of a series in the legend.
func (t *panelTarget) legend(labels map[string]string) string {
	return strings.TrimSpace(labelOfLegend.ReplaceAllStringFunc(t.LegendFormat, func(label string) string {
		return labels[strings.Trim(label, "{} ")]
	}))
}
