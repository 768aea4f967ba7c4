//go:build !race

// These tests are left out under the race detector: the modules of Prometheus are large, and the operator has its own tests with the race
// detector.

package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func loadedDashboard(t *testing.T) *dashboard {
	t.Helper()
	d, err := loadDashboard(dashboardFile)
	require.NoError(t, err)
	return d
}

func TestDashboardLayout(t *testing.T) {
	d := loadedDashboard(t)
	var raw struct {
		Panels []struct {
			ID         int
			Datasource struct{ Type, UID string }
			Type       string
			Targets    []struct{ Datasource struct{ Type, UID string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, dashboardFile)), &raw))
	ids := map[int]bool{}
	for i, p := range raw.Panels {
		assert.False(t, ids[p.ID], "panel id %d is used twice", p.ID)
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		assert.NotEmpty(t, d.Panels[i].Description, d.Panels[i].Title)
		assert.Equal(t, "prometheus ${datasource}", p.Datasource.Type+" "+p.Datasource.UID, d.Panels[i].Title)
		for _, target := range p.Targets {
			assert.Equal(t, p.Datasource, target.Datasource, d.Panels[i].Title)
		}
	}
	for i, a := range d.Panels {
		assert.LessOrEqual(t, a.GridPos.X+a.GridPos.W, 24, a.Title)
		for _, b := range d.Panels[:i] {
			apart := a.GridPos.X >= b.GridPos.X+b.GridPos.W || b.GridPos.X >= a.GridPos.X+a.GridPos.W ||
				a.GridPos.Y >= b.GridPos.Y+b.GridPos.H || b.GridPos.Y >= a.GridPos.Y+a.GridPos.H
			assert.True(t, apart, "%s and %s overlap", a.Title, b.Title)
		}
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// Each variable has values, and the panels use only these variables.
func TestDashboardVariables(t *testing.T) {
	d := loadedDashboard(t)
	db := recorded(t)
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		var definition struct{ Query string }
		require.NoError(t, json.Unmarshal(v.Query, &definition))
		parts := labelValues.FindStringSubmatch(definition.Query)
		require.NotNil(t, parts, definition.Query)
		values := map[string]bool{}
		for _, s := range matching(t, db, substitute(parts[1], d.everything(), scrapesPause)) {
			values[s.Metric.Get(parts[2])] = true
		}
		delete(values, "")
		assert.NotEmpty(t, values, v.Name)
	}
	for _, query := range d.queries() {
		assert.NotContains(t, query, "$")
	}
}

// matching returns the series that match the selectors of a query.
func matching(t *testing.T, db *database, query string) (all []promql.Series) {
	t.Helper()
	selectors, err := selectorsOf(query)
	require.NoError(t, err)
	for _, s := range selectors {
		all = append(all, db.find(s.LabelMatchers...)...)
	}
	return all
}

// recorded returns a database with the metrics of the recorded run.
func recorded(t *testing.T) *database {
	t.Helper()
	db, err := readRun(recordedRun)
	require.NoError(t, err)
	return db
}

// Each query of the dashboard has data in the recorded run, even if one operator, controller, kind and namespace is selected.
func TestPanelsHaveData(t *testing.T) {
	d, db := loadedDashboard(t), recorded(t)
	one := map[string]string{
		"job": "memcached-controller-manager-metrics", "controller": "memcached", "kind": "Memcached", "namespace": "(shop|blog)",
	}
	assertPanelsHaveData(t, d, db, d.everything())
	assertPanelsHaveData(t, d, db, one)
	require.ElementsMatch(t, slices.Collect(maps.Keys(one)), slices.DeleteFunc(slices.Collect(maps.Keys(d.everything())),
		func(name string) bool { return name == "datasource" }))
}

func assertPanelsHaveData(t *testing.T, d *dashboard, db *database, chosen map[string]string) {
	t.Helper()
	first, last := db.span()
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			query := substitute(target.Expr, chosen, scrapesPause)
			result, err := db.between(t.Context(), query, first, last, scrapesPause)
			if assert.NoError(t, err, p.Title) {
				assert.NotEmpty(t, result, "%s: %s", p.Title, query)
			}
		}
	}
}
