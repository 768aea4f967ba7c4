package main

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// database holds samples in memory, and evaluates queries over them as Prometheus does.
type database struct {
	mu     sync.Mutex
	series map[string]*promql.Series // by their labels
	engine *promql.Engine
}

var _ storage.Queryable = &database{}

// promQL is the parser of all queries, without experimental features.
var promQL = parser.NewParser(parser.Options{})

func newDatabase() *database {
	return &database{
		series: map[string]*promql.Series{},
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		}),
	}
}

// add adds a sample. Samples of a series have to be added in the order of time.
func (db *database) add(l labels.Labels, at time.Time, v float64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	key := l.String()
	s, ok := db.series[key]
	if !ok {
		s = &promql.Series{Metric: l.Copy()}
		db.series[key] = s
	}
	s.Floats = append(s.Floats, promql.FPoint{T: at.UnixMilli(), F: v})
}

// addStale marks the end of a series, as Prometheus does if a scrape no longer has the series.
func (db *database) addStale(l labels.Labels, at time.Time) {
	db.add(l, at, math.Float64frombits(value.StaleNaN))
}

// span returns the times of the first and the last sample.
func (db *database) span() (first, last time.Time) {
	db.mu.Lock()
	defer db.mu.Unlock()
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range db.series {
		from, to = min(from, s.Floats[0].T), max(to, s.Floats[len(s.Floats)-1].T)
	}
	return time.UnixMilli(from), time.UnixMilli(to)
}

// find returns the series that match, sorted by their labels.
func (db *database) find(matchers ...*labels.Matcher) []promql.Series {
	db.mu.Lock()
	defer db.mu.Unlock()
	var all []promql.Series
	for _, key := range slices.Sorted(maps.Keys(db.series)) {
		s := *db.series[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			s.Floats = slices.Clone(s.Floats)
			all = append(all, s)
		}
	}
	return all
}

// at evaluates a query at one time.
func (db *database) at(ctx context.Context, query string, at time.Time) (promql.Vector, error) {
	q, err := db.engine.NewInstantQuery(ctx, db, nil, query, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	v, err := q.Exec(ctx).Vector()
	return slices.Clone(v), err
}

// between evaluates a query for a range of time.
func (db *database) between(ctx context.Context, query string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	q, err := db.engine.NewRangeQuery(ctx, db, nil, query, from, to, step)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	m, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	copied := make(promql.Matrix, len(m)) // the samples are copied, since Close frees them
	for i, s := range m {
		copied[i] = promql.Series{Metric: s.Metric, Floats: slices.Clone(s.Floats)}
	}
	return copied, nil
}

// Querier implements [storage.Queryable].
func (db *database) Querier(_, _ int64) (storage.Querier, error) { return querier{db}, nil }

// querier reads the series of a database. Only Select is used by the engine.
type querier struct{ db *database }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{next: -1}
	for _, s := range q.db.find(matchers...) {
		set.series = append(set.series, promql.NewStorageSeries(s))
	}
	return set
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.next] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
