// Package eventnote makes strings that the API accepts as the note or the action of an event.
package eventnote

import (
	"strings"
	"unicode"
)

// limit is the API's limit for a note in bytes. The API server refuses an event with a longer note, so the event would be lost.
const limit = 1024

// Cut returns the note. If it is longer than the limit, Cut shortens it, and the result is still valid UTF-8.
func Cut(note string) string {
	if len(note) <= limit {
		return strings.ToValidUTF8(note, "\uFFFD")
	}
	return strings.ToValidUTF8(note[:limit-len("…")], "") + "…"
}

// CamelCase returns the name of a step in the form that the API accepts as the action of an event or the type of a condition. If the name
// has no letters and digits, it returns "Reconcile".
func CamelCase(name string) string {
	var b strings.Builder
	upper := true
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			upper = true
			continue
		}
		if upper {
			r = unicode.ToUpper(r)
		}
		b.WriteRune(r)
		upper = false
	}
	if b.Len() == 0 {
		return "Reconcile"
	}
	return b.String()
}
