package external

import (
	"fmt"
	"slices"
)

// things has the recorded things of an object during a pass. The pass changes it.
type things struct {
	keys []string // the desired keys
	all  []Reference
}

func keysOf(all []Reference) (keys []string) {
	for _, ref := range all {
		keys = append(keys, ref.Key)
	}
	return keys
}

// get returns what is recorded about the thing with a key.
func (t *things) get(key string) (ref Reference, recorded bool) {
	if i := t.index(key); i >= 0 {
		return t.all[i], true
	}
	return Reference{Key: key}, false
}

func (t *things) index(key string) int {
	return slices.IndexFunc(t.all, func(ref Reference) bool { return ref.Key == key })
}

// set records a thing. It replaces the record of another thing with the same key.
func (t *things) set(ref Reference) {
	if i := t.index(ref.Key); i >= 0 {
		t.all[i] = ref
		return
	}
	t.all = append(t.all, ref)
}

// remove removes the record of the thing with a key.
func (t *things) remove(key string) {
	t.all = slices.DeleteFunc(t.all, func(ref Reference) bool { return ref.Key == key })
}

// former returns the recorded things whose keys are not desired any more.
func (t *things) former() (former []Reference) {
	for _, ref := range t.all {
		if !slices.Contains(t.keys, ref.Key) {
			former = append(former, ref)
		}
	}
	return former
}

// areConfirmed reports whether each desired key has a confirmed thing, and no former thing is recorded.
func (t *things) areConfirmed() bool {
	return len(t.all) == len(t.keys) && !slices.ContainsFunc(t.keys, t.isMissing)
}

// isMissing reports whether no confirmed thing with this key is recorded.
func (t *things) isMissing(key string) bool {
	ref, recorded := t.get(key)
	return !recorded || ref.Pending
}

// names returns the names of the things with these keys, as one text.
func (t *things) names(keys []string) string {
	switch len(keys) {
	case 0:
		return ""
	case 1:
		only, _ := t.get(keys[0])
		return only.String()
	}
	first, _ := t.get(keys[0])
	return fmt.Sprintf("%s, with %d more,", first, len(keys)-1)
}
