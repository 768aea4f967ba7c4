package ownedresources

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of all sets of a process. Until they are registered, nobody sees them.
type metrics struct {
	applies *prometheus.CounterVec
	settled *prometheus.GaugeVec
	loops   *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "opblocks_applies_total",
			Help: "What was done to owned objects, by their kind and the result: created, applied, recreated, deleted, failed. What was as wanted is not counted.",
		}, []string{"kind", "result"}),
		settled: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "opblocks_settled_differences",
			Help: "How many owned objects of a kind an admission plug-in changes in a field that is wanted otherwise, and that are left so.",
		}, []string{"kind", "path"}),
		loops: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "opblocks_write_loop",
			Help: "1 for an object that somebody else changes back again and again, so that it is written less often.",
		}, []string{"kind", "namespace", "name", "path"}),
	}
}

// register shows the metrics; the sets of a process share them. Call it before they are used.
func (m *metrics) register(registry prometheus.Registerer) error {
	return errors.Join(share(registry, &m.applies), share(registry, &m.settled), share(registry, &m.loops))
}

func share[C prometheus.Collector](registry prometheus.Registerer, c *C) error {
	err := registry.Register(*c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		*c = known.ExistingCollector.(C)
		return nil
	}
	return err
}
