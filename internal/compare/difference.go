package compare

import (
	"strconv"
	"strings"
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
type trace struct {
	path  []string
	found []Difference
}

// enter is for a struct's field.
func (t *trace) enter(name string) {
	if t != nil {
		t.path = append(t.path, name)
	}
}

func (t *trace) enterItem(i int) {
	if t != nil {
		t.path = append(t.path, "["+strconv.Itoa(i)+"]")
	}
}

// enterItemKey is for a map's key, which may hold dots and slashes.
func (t *trace) enterItemKey(k string) {
	if t != nil {
		t.path = append(t.path, "["+k+"]")
	}
}

func (t *trace) leave() {
	if t != nil {
		t.path = t.path[:len(t.path)-1]
	}
}

// missing notes that a value is not there, or not the same; it gives false.
func (t *trace) missing(want, have []byte) bool {
	var path strings.Builder
	for _, step := range t.path {
		if path.Len() > 0 && !strings.HasPrefix(step, "[") {
			path.WriteByte('.')
		}
		path.WriteString(step)
	}
	t.found = append(t.found, Difference{Path: path.String(), Want: string(want), Have: string(have)})
	return false
}
