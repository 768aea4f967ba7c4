//go:build !race

// These tests are left out under the race detector: the modules of Prometheus are large, and the operator has its own tests with the race
// detector.

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestRealRun runs the scenario once. It checks that the metrics have everything that the rules, the dashboard and the page name, and that
// the spans have what the page promises.
func TestRealRun(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane; run without -short")
	}
	spans := tracetest.NewInMemoryExporter()
	s, err := startScenario(t.Context(), &tracing{sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.stop()) })
	require.NoError(t, s.play(t.Context(), 0))
	begin, end := s.metrics.span()
	require.NoError(t, s.stop())

	d, r := loadedDashboard(t), ruleFile(t)
	t.Run("Metrics", func(t *testing.T) {
		for _, query := range append(d.queries(), r.queries()...) {
			assertExists(t, s.metrics, query)
		}
	})
	t.Run("Panels", func(t *testing.T) { assertPanelsHaveData(t, d, s.metrics, d.everything()) })
	t.Run("Page", func(t *testing.T) { assertPageHasMetrics(t, s.metrics) })
	t.Run("AlertsOfClusters", func(t *testing.T) { // these alerts exist for every controller of controller-runtime
		file := filepath.Join(t.TempDir(), "rules.yaml")
		require.NoError(t, os.WriteFile(file, []byte(`groups:
- name: clusters
  rules:
  - alert: ReconcileErrors
    expr: sum by (controller) (increase(controller_runtime_reconcile_errors_total[15m])) > 0
    annotations: {summary: "{{ $labels.controller }} has errors"}
`), 0o600))
		common, err := loadRules(file)
		require.NoError(t, err)
		firing, err := common.evaluate(t.Context(), s.metrics, begin, end, 5*time.Second)
		require.NoError(t, err)
		require.Contains(t, firing, "memcached has errors", "the API server could not write a Deployment for a while")
	})
	t.Run("Alerts", func(t *testing.T) {
		want := []string{
			"A server that step registration of Cache calls has not been reached for 15 minutes",
			"Another writer changes Service blog/contested back again and again",
			"Cache shop/catalog has not been ready for 30 minutes",
			"Cache shop/search has not been ready for 30 minutes",
			"Memcached failing/reports has not been ready for 30 minutes",
			"Memcached shop/large has not been ready for 30 minutes",
			"Memcached shop/limits is stalled",
		}
		s.metrics.repeat(end, time.Hour, 30*time.Second)
		firing, err := r.evaluate(t.Context(), s.metrics, end, end.Add(time.Hour), 30*time.Second)
		require.NoError(t, err)
		if diff := cmp.Diff(want, firing); diff != "" {
			t.Errorf("an hour later (-want +got)\n%s", diff)
		}
	})
	t.Run("Spans", func(t *testing.T) { checkSpans(t, spans.GetSpans()) })
}

// repeat adds the last samples again and again, as if nothing else happened.
func (db *database) repeat(last time.Time, during, interval time.Duration) {
	for _, s := range db.find() {
		if p := s.Floats[len(s.Floats)-1]; p.T == last.UnixMilli() && !math.IsNaN(p.F) {
			for at := interval; at <= during; at += interval {
				db.add(s.Metric, last.Add(at), p.F)
			}
		}
	}
}

// assertExists checks that the metrics of a query exist, and that they have the labels that the query selects or groups by. The selected
// value of a label need not occur: not every failure can happen in one run.
func assertExists(t *testing.T, db *database, query string) {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	require.NoError(t, err)
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || strings.Contains(selector.Name, ":") { // not a metric of the library, or the metric of a recording rule
			return nil
		}
		of := labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, selector.Name)
		series := db.find(of)
		if !assert.NotEmpty(t, series, "%s: there is no metric %s", query, selector.Name) {
			return nil
		}
		var needed []string
		for _, m := range selector.LabelMatchers {
			needed = append(needed, m.Name)
		}
		for _, above := range path {
			if aggregation, ok := above.(*parser.AggregateExpr); ok && !aggregation.Without {
				needed = append(needed, aggregation.Grouping...)
			}
		}
		for _, label := range needed {
			assert.True(t, series[0].Metric.Has(label), "%s: %s has no label %s", query, selector.Name, label)
		}
		return nil
	})
}

// assertPageHasMetrics checks that the page has exactly the metrics of the library, with their labels.
func assertPageHasMetrics(t *testing.T, db *database) {
	t.Helper()
	added := newTarget("").labels
	got := map[string]string{}
	for _, s := range db.find(labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, "opblocks_.*")) {
		var names []string
		s.Metric.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel && l.Name != "le" && (l.Name == "namespace" && l.Value != "memcached-system" || !added.Has(l.Name)) {
				names = append(names, l.Name)
			}
		})
		name := s.Metric.Get(model.MetricNameLabel)
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		slices.Sort(names)
		got[name] = strings.Join(names, ", ")
	}
	want := map[string]string{}
	for line := range strings.Lines(read(t, pageFile)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(cells[1], " `opblocks_") {
			continue
		}
		names := strings.Split(strings.TrimSpace(cells[2]), ", ")
		slices.Sort(names)
		want[strings.Trim(cells[1], " `")] = strings.Join(names, ", ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-page +metrics)\n%s", diff)
	}
}

// checkSpans checks what the page promises. There are spans of passes. Spans of steps have a pass as their parent. Spans of requests have a
// pass or a step as their parent.
func checkSpans(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	byID := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		byID[s.SpanContext.SpanID().String()] = s
	}
	found := map[string]int{} // counts by the beginning of the parent's name and the span's name
	for _, s := range spans {
		first, _, _ := strings.Cut(s.Name, " ")
		parent, ok := byID[s.Parent.SpanID().String()]
		if s.Parent.IsValid() && !ok {
			continue // the operator was stopped during the pass
		}
		above, _, _ := strings.Cut(parent.Name, " ")
		found[strings.TrimSpace(above+" "+first)]++
	}
	for _, kind := range []string{"Reconcile", "Reconcile Step", "Step HTTP", "Reconcile HTTP"} {
		assert.Positive(t, found[kind], "%s in %v", kind, found)
	}
	for kind := range found {
		assert.Contains(t, []string{"Reconcile", "Reconcile Step", "Reconcile AfterSteps", "Step HTTP", "AfterSteps HTTP", "Reconcile HTTP"}, kind)
	}
	failures := slices.DeleteFunc(slices.Clone(spans), func(s tracetest.SpanStub) bool {
		return s.Name != "Step workload" || s.Status.Code != codes.Error
	})
	var reasons []string
	for _, s := range failures {
		reasons = append(reasons, s.Status.Description)
	}
	slices.Sort(reasons)
	assert.Equal(t, []string{"Failed", "Invalid"}, slices.Compact(reasons), "the requests that are answered with 500, and the resources that are refused")
	for _, s := range spans {
		text := fmt.Sprint(s.Name, s.Attributes, s.Events, s.Status)
		for _, secret := range []string{"1.6-alpine", "request timed out", "limit"} {
			assert.NotContains(t, strings.ReplaceAll(text, "limits", ""), secret, "values of the spec and messages stay out of spans")
		}
	}
}
