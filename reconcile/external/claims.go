package external

import (
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
	holders map[string]map[string]holder             // by group and key
	groups  map[types.NamespacedName]map[string]bool // of which each object holds keys
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
	for key, h := range c.holders[group] {
		if h.uid != obj.GetUID() && isRival(key, h) {
			return &h
		}
	}
	if c.holders == nil {
		c.holders, c.groups = map[string]map[string]holder{}, map[types.NamespacedName]map[string]bool{}
	}
	self := holder{client.ObjectKeyFromObject(obj), obj.GetUID()}
	for _, key := range keys {
		setIn(c.holders, group, key, self)
		setIn(c.groups, self.NamespacedName, group, true)
	}
	return nil
}

// keep removes the keys that the object of a name holds and that are not among these. It adds none.
func (c *claims) keep(name types.NamespacedName, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for group := range c.groups[name] {
		stays := false
		for key, h := range c.holders[group] {
			switch {
			case h.NamespacedName != name:
			case slices.Contains(keys, key):
				stays = true
			default:
				deleteIn(c.holders, group, key)
			}
		}
		if !stays {
			deleteIn(c.groups, name, group)
		}
	}
}

func setIn[K, L comparable, V any](all map[K]map[L]V, outer K, inner L, value V) {
	if all[outer] == nil {
		all[outer] = map[L]V{}
	}
	all[outer][inner] = value
}

// deleteIn deletes a value, and the inner map with its last value.
func deleteIn[K, L comparable, V any](all map[K]map[L]V, outer K, inner L) {
	if delete(all[outer], inner); len(all[outer]) == 0 {
		delete(all, outer)
	}
}
