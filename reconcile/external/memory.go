package external

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// synced is what the last pass over an object that succeeded has seen.
type synced struct {
	generation int64
	version    string
	policy     policy
	due        time.Time // when the thing is to be observed again
}

// memory holds, in this process, what was seen of each object. It is empty after the start: then each object is observed once.
type memory struct {
	mu    sync.Mutex
	byUID map[types.UID]synced
}

func (m *memory) get(uid types.UID) synced {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byUID[uid]
}

func (m *memory) set(uid types.UID, s synced) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byUID == nil {
		m.byUID = map[types.UID]synced{}
	}
	m.byUID[uid] = s
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
}
