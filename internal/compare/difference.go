package compare

import (
	"strconv"

	"github.com/opblocks/opblocks/internal/diff"
)

// Difference is one place where a live object does not cover the wanted one.
type Difference struct {
	// Path is the path of the field, as in messages of the API server: spec.containers[name=web].image.
	Path string
	// Want is the wanted value as JSON. It is empty if the live value must be absent.
	Want string
	// Have is the live value as JSON. It is empty if there is none.
	Have string
}

// recorder collects differences while a comparer walks over two values. With a nil recorder, the walk stops at the first
// difference.
//
// It does not use the walk of package internal/diff, which asks whether two values are equal. The comparison here
// follows the API's schema, ignores what others added, and walks Go structs without converting them. The two packages
// share paths.
type recorder struct {
	path  diff.Path
	found []Difference
}

// enterField enters a field of a struct.
func (r *recorder) enterField(name string) {
	if r != nil {
		r.path = r.path.Field(name)
	}
}

// enterIndex enters an item of an atomic list.
func (r *recorder) enterIndex(i int) {
	if r != nil {
		r.path = r.path.Item(strconv.Itoa(i))
	}
}

// enterMapKey enters a value of a map. The key is shown in brackets, since it may contain dots and slashes.
func (r *recorder) enterMapKey(k string) {
	if r != nil {
		r.path = r.path.Item(k)
	}
}

// leave ends the last enter.
func (r *recorder) leave() {
	if r != nil {
		r.path = r.path[:len(r.path)-1]
	}
}

// enterItem enters an item of a list that several writers share. It is named by its keys.
func (r *recorder) enterItem(name string) {
	if r != nil {
		r.path = r.path.Item(name)
	}
}

// record adds a difference at the current path. It always returns false, the result of covers.
func (r *recorder) record(d Difference) bool {
	if r == nil {
		return false
	}
	d.Path = r.path.String()
	r.found = append(r.found, d)
	return false
}
