package external

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// synced has the state of an object in its last successful pass.
type synced struct {
	uid        types.UID
	generation int64
	version    string
	policy     policy
	at         time.Time // the time of the observation
	behind     bool      // the observation did not show the last update
}

// memory has the state of each object in its last successful pass. It is lost in a restart, so each object is observed again.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]synced
}

// get returns the state of an object in its last successful pass. If that pass was for another object of the same
// name, get returns the zero value.
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
