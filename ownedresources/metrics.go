package ownedresources

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/opblocks/opblocks/internal/writeloop"
)

// metrics are shared by all sets of a process once they are registered.
type metrics struct {
	applies   *prometheus.CounterVec
	rewritten *prometheus.GaugeVec
	loops     *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "opblocks_applies_total",
			Help: "Writes of owned objects, by kind and result: created, applied, recreated, deleted, retained, failed. An object that is already as desired is not counted.",
		}, []string{"kind", "result"}),
		rewritten: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "opblocks_settled_differences",
			Help: "Owned objects of a kind in which an admission plug-in rewrites the field at this path. Such a difference is not applied again.",
		}, []string{"kind", "path"}),
		loops: writeloop.NewMetric(),
	}
}

// register registers the metrics, or replaces them by the metrics that another set has registered. Call it before they
// are used.
func (m *metrics) register(registry prometheus.Registerer) error {
	return errors.Join(registerOrShare(registry, &m.applies), registerOrShare(registry, &m.rewritten), registerOrShare(registry, &m.loops))
}

func registerOrShare[C prometheus.Collector](registry prometheus.Registerer, c *C) error {
	err := registry.Register(*c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		*c = known.ExistingCollector.(C)
		return nil
	}
	return err
}
