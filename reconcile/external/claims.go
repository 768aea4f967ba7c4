package external

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claims decide between passes over several objects that run at the same time. Such a pass sees the others as the cache shows them: it
// may lag behind what this process has written. An object holds each key from the beginning of the pass that acquires it until
// its record does not have the key any more. No two hold the same key.
type claims struct {
	mu      sync.Mutex
	holders map[string]map[string]holder // by group and key
}

// holder is the object that holds a key.
type holder struct {
	types.NamespacedName
	uid types.UID
}

// take makes obj hold keys of a group, all of them or none. If a rival holds a key of the group, take returns the rival.
func (c *claims) take(obj client.Object, group string, keys []string, isRival func(key string, h holder) bool) *holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.holders[group]
	for key, h := range held {
		if h.uid != obj.GetUID() && isRival(key, h) {
			return &h
		}
	}
	if held == nil {
		held = map[string]holder{}
	}
	for _, key := range keys {
		held[key] = holder{client.ObjectKeyFromObject(obj), obj.GetUID()}
	}
	if c.holders == nil {
		c.holders = map[string]map[string]holder{}
	}
	c.holders[group] = held
	return nil
}

// keep removes the keys that an object holds and that are not among these. It adds none.
func (c *claims) keep(uid types.UID, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for group, held := range c.holders {
		maps.DeleteFunc(held, func(key string, h holder) bool { return h.uid == uid && !slices.Contains(keys, key) })
		if len(held) == 0 {
			delete(c.holders, group)
		}
	}
}

// forget removes what the object of a name holds.
func (c *claims) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for group, held := range c.holders {
		maps.DeleteFunc(held, func(_ string, h holder) bool { return h.NamespacedName == name })
		if len(held) == 0 {
			delete(c.holders, group)
		}
	}
}
