package reconcile

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// conditionMetric shows the conditions of objects. It makes its series when it is asked: kept ones, as
// a GaugeVec has them, would take as much memory as the objects.
type conditionMetric struct {
	desc     *prometheus.Desc
	mu       sync.Mutex
	byObject map[shownObject]shownConditions
}

type shownObject struct {
	kind string
	name types.NamespacedName
}

// shownConditions are one reconciler's. Another one of a kind of that name may have an object of the same name.
type shownConditions struct {
	by  *metrics
	all []shownCondition
}

type shownCondition struct {
	conditionType string
	level         int8
}

var _ prometheus.Collector = &conditionMetric{}

func newConditionMetric() *conditionMetric {
	return &conditionMetric{
		desc: prometheus.NewDesc("opblocks_condition",
			"A condition of an object: 1 for True, 0 for False, -1 for Unknown; absent when the object has none of that type.",
			[]string{"kind", "namespace", "name", "type"}, nil),
		byObject: map[shownObject]shownConditions{},
	}
}

// Describe implements [prometheus.Collector].
func (m *conditionMetric) Describe(descs chan<- *prometheus.Desc) { descs <- m.desc }

// Collect implements [prometheus.Collector].
func (m *conditionMetric) Collect(series chan<- prometheus.Metric) {
	m.mu.Lock()
	all := maps.Clone(m.byObject) // passes need not wait for whoever reads
	m.mu.Unlock()
	for object, shown := range all {
		for _, c := range shown.all {
			series <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(c.level),
				object.kind, object.name.Namespace, object.name.Name, c.conditionType)
		}
	}
}

func (m *conditionMetric) knows(object shownObject) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.byObject[object]
	return known
}

// set shows what conditions say, of which no two are of one type.
func (m *conditionMetric) set(object shownObject, by *metrics, list []metav1.Condition) {
	var shown []shownCondition
	for _, c := range list {
		shown = append(shown, shownCondition{c.Type, level(c.Status)})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byObject[object] = shownConditions{by, shown}
}

// forget drops what a reconciler has shown.
func (m *conditionMetric) forget(object shownObject, by *metrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byObject[object].by == by {
		delete(m.byObject, object)
	}
}

func level(status metav1.ConditionStatus) int8 {
	switch status {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	}
	return -1
}
