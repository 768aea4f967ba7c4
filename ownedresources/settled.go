package ownedresources

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/compare"
)

// settled remembers, per object, in what the API server's answer to our last write
// differed from what we sent: an admission plug-in rewrites it. Sending the same again
// would change nothing, for ever.
type settled struct {
	metrics *metrics
	count   atomic.Int64
	mu      sync.Mutex
	byUID   map[types.UID]settledObject
}

type settledObject struct {
	kind        string
	differences []compare.Difference
}

func newSettled(m *metrics) *settled {
	return &settled{metrics: m, byUID: map[types.UID]settledObject{}}
}

func (s *settled) record(kind string, uid types.UID, differences []compare.Difference) {
	if len(differences) == 0 && s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(s.byUID[uid], -1)
	delete(s.byUID, uid)
	if len(differences) > 0 {
		s.byUID[uid] = settledObject{kind, differences}
		s.show(s.byUID[uid], 1)
	}
	s.count.Store(int64(len(s.byUID)))
}

func (s *settled) show(o settledObject, more float64) {
	for _, d := range o.differences {
		s.metrics.settled.WithLabelValues(o.kind, d.Path).Add(more)
	}
}

// holds reports whether every difference stood in the answer to our last write, with the
// same values.
func (s *settled) holds(uid types.UID, differences []compare.Difference) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byUID[uid].differences
	for _, d := range differences {
		if !slices.Contains(known, d) {
			return false
		}
	}
	return true
}

// forget is for an object that is gone.
func (s *settled) forget(uid types.UID) { s.record("", uid, nil) }
