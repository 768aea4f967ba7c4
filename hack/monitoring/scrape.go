package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// target is an operator that is scraped, with the labels that Prometheus adds to its metrics.
type target struct {
	url    string
	labels labels.Labels
	seen   map[string]labels.Labels // the series of the last scrape
}

// newTarget returns a target with the labels that the Prometheus Operator sets. The label namespace is the operator's namespace.
func newTarget(url string) *target {
	return &target{url: url, labels: labels.FromStrings(
		"job", "memcached-controller-manager-metrics", "instance", "10.0.0.1:8443", "namespace", "memcached-system",
		"service", "memcached-controller-manager-metrics", "pod", "memcached-controller-manager-0", "container", "manager", "endpoint", "https",
	)}
}

// scrape reads the metrics and adds them to the database.
func (t *target) scrape(ctx context.Context, db *database, now time.Time) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", t.url, response.Status)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return t.add(db, text, response.Header.Get("Content-Type"), now)
}

// add adds the samples of one scrape, with the labels of the target. As with honor_labels, a label of the metric has precedence.
func (t *target) add(db *database, text []byte, contentType string, now time.Time) error {
	parser, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	seen := map[string]labels.Labels{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		_, _, v := parser.Series()
		parser.Labels(&of)
		all := t.honor(of)
		db.add(all, now, v)
		seen[all.String()] = all
	}
	t.end(db, seen, now)
	return nil
}

// end marks the end of series that the last scrape had and this one lacks.
func (t *target) end(db *database, seen map[string]labels.Labels, now time.Time) {
	for key, l := range t.seen {
		if _, ok := seen[key]; !ok {
			db.addStale(l, now)
		}
	}
	t.seen = seen
}

// honor returns the labels of a metric, together with the labels of the target that the metric lacks. A label that is empty in the metric
// stays empty. So an object without a namespace does not get the operator's namespace.
func (t *target) honor(of labels.Labels) labels.Labels {
	b := labels.NewBuilder(of)
	t.labels.Range(func(l labels.Label) {
		if !of.Has(l.Name) {
			b.Set(l.Name, l.Value)
		}
	})
	return b.Labels()
}
