// Package claims decides which object gets a key, if passes of several objects that want it run at the same time in one
// process.
package claims

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Table says which object holds each key. A pass sees the other objects as they are in the cache, which may be behind the writes of this
// process. So an object holds each key from the beginning of the pass in which it gets the key, until its record does not contain the key
// any more. A key has at most one holder.
type Table struct {
	mu      sync.Mutex
	holders map[string]map[string]Holder             // by group and key
	groups  map[types.NamespacedName]map[string]bool // the groups in which each object holds keys
}

// Holder is the object that holds a key.
type Holder struct {
	types.NamespacedName
	UID types.UID
}

// Take makes obj the holder of all these keys, which belong to a group. If another object holds a key of the group, and isRival returns
// true for it, Take changes nothing and returns that holder.
func (t *Table) Take(obj metav1.Object, group string, keys []string, isRival func(key string, h Holder) bool) *Holder {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, h := range t.holders[group] {
		if h.UID != obj.GetUID() && isRival(key, h) {
			return &h
		}
	}
	if t.holders == nil {
		t.holders, t.groups = map[string]map[string]Holder{}, map[types.NamespacedName]map[string]bool{}
	}
	self := Holder{types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, obj.GetUID()}
	for _, key := range keys {
		setIn(t.holders, group, key, self)
		setIn(t.groups, self.NamespacedName, group, true)
	}
	return nil
}

// Keep makes an object release all keys except these. It does not add keys.
func (t *Table) Keep(name types.NamespacedName, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for group := range t.groups[name] {
		stays := false
		for key, h := range t.holders[group] {
			switch {
			case h.NamespacedName != name:
			case slices.Contains(keys, key):
				stays = true
			default:
				deleteIn(t.holders, group, key)
			}
		}
		if !stays {
			deleteIn(t.groups, name, group)
		}
	}
}

func setIn[K, L comparable, V any](all map[K]map[L]V, outer K, inner L, value V) {
	if all[outer] == nil {
		all[outer] = map[L]V{}
	}
	all[outer][inner] = value
}

// deleteIn deletes a value of an inner map. If the inner map is then empty, it deletes the inner map too.
func deleteIn[K, L comparable, V any](all map[K]map[L]V, outer K, inner L) {
	if delete(all[outer], inner); len(all[outer]) == 0 {
		delete(all, outer)
	}
}
