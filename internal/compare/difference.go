package compare

import (
	"strconv"

	"github.com/opblocks/opblocks/internal/diff"
)

// Difference is one place where a live object does not cover the wanted one.
type Difference struct {
	// Path of the field, as in an API server's messages: spec.containers[name=web].image.
	Path string
	// Want is the wanted value as JSON; empty when none must be there.
	Want string
	// Have is the live value as JSON; empty when there is none.
	Have string
}

// trace collects differences. A nil trace makes comparing stop at the first one.
//
// This is not package internal/diff, which asks whether two values are equal: comparing here follows the API's
// schema, ignores what others added, and walks Go structs without converting them. The two share paths.
type trace struct {
	path  diff.Path
	found []Difference
}

// enter is for a struct's field.
func (t *trace) enter(name string) {
	if t != nil {
		t.path = t.path.Field(name)
	}
}

func (t *trace) enterItem(i int) {
	if t != nil {
		t.path = t.path.Item(strconv.Itoa(i))
	}
}

// enterItemKey is for a map's key, which may hold dots and slashes.
func (t *trace) enterItemKey(k string) {
	if t != nil {
		t.path = t.path.Item(k)
	}
}

func (t *trace) leave() {
	if t != nil {
		t.path = t.path[:len(t.path)-1]
	}
}

// missing notes that a value is not there, or not the same; it gives false.
func (t *trace) missing(want, have []byte) bool {
	t.found = append(t.found, Difference{Path: t.path.String(), Want: string(want), Have: string(have)})
	return false
}
