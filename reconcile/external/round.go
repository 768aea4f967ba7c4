package external

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// round is what the passes over an object have done since all was as desired last, or since one of them has failed. If the turn of a pass is
// over, or the quota is used up, the next pass goes on with the round. It lives in memory: another process begins anew, with what the
// status records.
type round[S any] struct {
	of      synced
	keys    []string
	found   map[string]*candidate[S] // by key
	unseen  map[string]error         // by the key of a former thing that may exist: the wait for the API to show it
	version string                   // the version of what was found
	begun   bool                     // version is known
	behind  bool                     // see pass
}

// isOf reports whether a round is of what is desired now.
func (r *round[S]) isOf(of synced, keys []string) bool {
	return r.of == of && slices.Equal(r.keys, keys)
}

// rounds are the rounds that were put off.
type rounds[S any] struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*round[S]
}

// take returns the round of an object that was put off, or a new one if there is none of what is desired now.
func (r *rounds[S]) take(name types.NamespacedName, of synced, keys []string) *round[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byName[name]
	delete(r.byName, name)
	if known != nil && known.isOf(of, keys) {
		return known
	}
	return &round[S]{of: of, keys: keys, found: map[string]*candidate[S]{}, unseen: map[string]error{}}
}

func (r *rounds[S]) putOff(name types.NamespacedName, one *round[S]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[types.NamespacedName]*round[S]{}
	}
	r.byName[name] = one
}

func (r *rounds[S]) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, name)
}

// freshFor is how long an observation of a round is believed before something is updated by it.
const freshFor = 5 * time.Second
