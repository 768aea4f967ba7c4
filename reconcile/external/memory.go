package external

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// synced is what the last successful pass over an object has seen.
type synced struct {
	uid        types.UID
	generation int64
	version    string
	policy     policy
	at         time.Time // the time of the observation
	behind     bool      // the observation did not show the last update
}

// memory holds, in this process, what passes have seen of each object. It is empty after the start, so each object is observed
// once.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]synced
}

// get returns what passes have seen of an object. If an earlier object had the name, get returns the zero value.
func (m *memory) get(name types.NamespacedName, uid types.UID) synced {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.byName[name]; s.uid == uid {
		return s
	}
	return synced{}
}

func (m *memory) set(name types.NamespacedName, s synced) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[types.NamespacedName]synced{}
	}
	m.byName[name] = s
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
}
