package storageversion

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the metric of one kind.
type metrics struct {
	done, refused, remaining prometheus.Gauge
}

// newMetrics returns the metric of a kind. kind includes the group, as in Memcached.cache.example.com, because kinds in two
// groups may have the same name.
func newMetrics(registry prometheus.Registerer, kind string) (*metrics, error) {
	objects := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "opblocks_storage_migration_objects",
		Help: "The number of objects of the kind in the last storage migration, by their state: done, refused, remaining.",
	}, []string{"kind", "state"})
	if err := registry.Register(objects); err != nil {
		known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err)
		if !ok {
			return nil, err
		}
		objects = known.ExistingCollector.(*prometheus.GaugeVec)
	}
	return &metrics{
		done: objects.WithLabelValues(kind, "done"), refused: objects.WithLabelValues(kind, "refused"), remaining: objects.WithLabelValues(kind, "remaining"),
	}, nil
}

// set shows how many objects a walk has written and refused, and how many remain.
func (m *metrics) set(done, refused int, remaining int64) {
	m.done.Set(float64(done))
	m.refused.Set(float64(refused))
	m.remaining.Set(float64(remaining))
}
