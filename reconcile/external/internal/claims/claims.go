// Package claims decides between passes over several objects that run at the same time in one process, and want the same things.
package claims

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Table says which object holds each key. A pass sees the other objects as the cache shows them, and the cache may be behind what this process
// has written. So an object holds each key from the beginning of the pass that acquires it until its record does not have the key any more.
// No two hold the same key.
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

// Take makes obj hold keys of a group, all of them or none. If a rival holds a key of the group, Take returns the rival.
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

// Keep removes the keys that the object of a name holds and that are not among these. It adds none.
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

// deleteIn deletes a value, and the inner map with its last value.
func deleteIn[K, L comparable, V any](all map[K]map[L]V, outer K, inner L) {
	if delete(all[outer], inner); len(all[outer]) == 0 {
		delete(all, outer)
	}
}
