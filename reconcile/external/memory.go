package external

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// synced is what the last pass over an object that succeeded has seen.
type synced struct {
	uid        types.UID
	generation int64
	version    string
	policy     policy
	at         time.Time // when the thing was observed
	behind     bool      // it did not show the update then
}

// memory holds, in this process, what was seen of each object. It is empty after the start: then each object is observed once.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]synced
}

// get returns what was seen of an object. It returns the zero value if the object of this name was another one.
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
