package ownedresources

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/plan"
)

// settled remembers, per object, in what the API server's answer to our last write
// differed from what we sent: an admission plug-in rewrites it. Sending the same again
// would change nothing, for ever.
type settled struct {
	count atomic.Int64
	mu    sync.Mutex
	byUID map[types.UID][]plan.Difference
}

func newSettled() *settled { return &settled{byUID: map[types.UID][]plan.Difference{}} }

func (s *settled) record(uid types.UID, differences []plan.Difference) {
	if len(differences) == 0 && s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(differences) == 0 {
		delete(s.byUID, uid)
	} else {
		s.byUID[uid] = differences
	}
	s.count.Store(int64(len(s.byUID)))
}

// holds reports whether every difference stood in the answer to our last write, with the
// same values.
func (s *settled) holds(uid types.UID, differences []plan.Difference) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byUID[uid]
	for _, d := range differences {
		if !slices.Contains(known, d) {
			return false
		}
	}
	return true
}

// forget is for an object that is gone.
func (s *settled) forget(uid types.UID) { s.record(uid, nil) }
