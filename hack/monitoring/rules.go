package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
)

// rules are the rules of a rule file.
type rules struct{ groups []rulefmt.RuleGroup }

func loadRules(file string) (*rules, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	groups, errs := rulefmt.Parse(content, false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errors.Join(errs...))
	}
	return &rules{groups.Groups}, nil
}

// prometheusRule returns a rule file as a PrometheusRule, the object of the Prometheus Operator.
func prometheusRule(rules []byte) []byte {
	_, groups, _ := bytes.Cut(rules, []byte("groups:\n"))
	var b bytes.Buffer
	b.WriteString("# The rules of rules.yaml for the Prometheus Operator. Change them there, and run `go run .` in hack/monitoring.\n")
	b.WriteString("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: opblocks\nspec:\n  groups:\n")
	for line := range bytes.Lines(groups) {
		if len(bytes.TrimSpace(line)) > 0 {
			b.WriteString("  ")
		}
		b.Write(line)
	}
	return b.Bytes()
}

// alerts returns all alerting rules.
func (r *rules) alerts() (all []rulefmt.Rule) {
	for _, g := range r.groups {
		all = append(all, slices.DeleteFunc(slices.Clone(g.Rules), func(r rulefmt.Rule) bool { return r.Alert == "" })...)
	}
	return all
}

// queries returns the expressions of all rules.
func (r *rules) queries() (all []string) {
	for _, g := range r.groups {
		for _, rule := range g.Rules {
			all = append(all, rule.Expr)
		}
	}
	return all
}

// evaluation is the state after one evaluation of all rules, which the next evaluation needs.
type evaluation struct {
	since    map[string]time.Time     // when each alert became active, by its name and labels
	recorded map[string]labels.Labels // the series of recording rules
	firing   []string                 // the summaries of the alerts that fire
}

// evaluate evaluates the rules from one time to another, as Prometheus does. It returns the summaries of the alerts that fire at the end,
// sorted. It adds the samples of recording rules to the database.
func (r *rules) evaluate(ctx context.Context, db *database, from, to time.Time, interval time.Duration) (firing []string, err error) {
	var last evaluation
	for now := from; !now.After(to); now = now.Add(interval) {
		next := evaluation{since: map[string]time.Time{}, recorded: map[string]labels.Labels{}}
		for _, g := range r.groups {
			for _, rule := range g.Rules {
				if err := next.add(ctx, db, rule, now, last); err != nil {
					return nil, fmt.Errorf("%s%s: %w", rule.Record, rule.Alert, err)
				}
			}
		}
		for key, l := range last.recorded {
			if _, ok := next.recorded[key]; !ok {
				db.addStale(l, now)
			}
		}
		last = next
	}
	slices.Sort(last.firing)
	return last.firing, nil
}

// add evaluates one rule.
func (e *evaluation) add(ctx context.Context, db *database, rule rulefmt.Rule, now time.Time, last evaluation) error {
	result, err := db.at(ctx, rule.Expr, now)
	if err != nil {
		return err
	}
	for _, sample := range result {
		if rule.Record != "" {
			l := labels.NewBuilder(sample.Metric).Set(model.MetricNameLabel, rule.Record).Labels()
			db.add(l, now, sample.F)
			e.recorded[l.String()] = l
			continue
		}
		key := rule.Alert + sample.Metric.String()
		since, ok := last.since[key]
		if !ok {
			since = now
		}
		e.since[key] = since
		if now.Sub(since) < time.Duration(rule.For) {
			continue
		}
		summary, err := expand(ctx, rule, "summary", sample, now)
		if err != nil {
			return err
		}
		if _, err := expand(ctx, rule, "description", sample, now); err != nil {
			return err
		}
		e.firing = append(e.firing, summary)
	}
	return nil
}

// expand returns an annotation of an alert, with its template expanded for one sample.
func expand(ctx context.Context, rule rulefmt.Rule, annotation string, sample promql.Sample, now time.Time) (string, error) {
	text := `{{$labels := .Labels}}{{$value := .Value}}` + rule.Annotations[annotation]
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	noQuery := func(context.Context, string, time.Time) (promql.Vector, error) {
		return nil, errors.New("annotations run no queries")
	}
	expanded, err := template.NewTemplateExpander(ctx, text, rule.Alert, data, model.TimeFromUnixNano(now.UnixNano()), noQuery, &url.URL{}, nil).Expand()
	if err == nil && (strings.Contains(expanded, "  ") || strings.HasSuffix(expanded, " ")) { // a missing label expands to nothing
		err = fmt.Errorf("a label is missing in %q", expanded)
	}
	if err != nil {
		return "", fmt.Errorf("annotation %s: %w", annotation, err)
	}
	return expanded, nil
}

// selectorsOf returns the series selectors in a query.
func selectorsOf(query string) (all []*parser.VectorSelector, err error) {
	expr, err := promQL.ParseExpr(query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			all = append(all, s)
		}
		return nil
	})
	return all, nil
}

// metricsOf returns the names of the metrics that the queries read, except the metrics of recording rules.
func metricsOf(queries []string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, query := range queries {
		selectors, err := selectorsOf(query)
		if err != nil {
			return nil, err
		}
		for _, s := range selectors {
			if !strings.Contains(s.Name, ":") {
				names[s.Name] = true
			}
		}
	}
	return names, nil
}
