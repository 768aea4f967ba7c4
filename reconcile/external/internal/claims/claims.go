// Package claims decides between objects that want the same things and whose passes run at the same time in one process.
package claims

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Table says which object holds each key. A pass sees the other objects as the cache shows them, and the cache may be behind the writes of
// this process. So an object holds each key from the beginning of the pass that acquires it until its record does not have the key any
// more. A key has at most one holder.
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

// Take makes obj hold all of the keys, which belong to a group. If a rival holds a key of the group, Take changes nothing and returns the
// rival.
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

// Keep removes all keys that an object holds, except these. It does not add keys.
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

// deleteIn deletes a value. Deleting the last value of an inner map also deletes the inner map.
func deleteIn[K, L comparable, V any](all map[K]map[L]V, outer K, inner L) {
	if delete(all[outer], inner); len(all[outer]) == 0 {
		delete(all, outer)
	}
}
