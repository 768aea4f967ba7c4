// Package eventnote makes texts that the API accepts as the note and as the action of an event.
package eventnote

import (
	"strings"
	"unicode"
)

// limit is the API's limit in bytes. An event with a longer note is refused, and so it is lost.
const limit = 1024

// Cut returns the note, shortened to the limit if it is longer, as valid UTF-8.
func Cut(note string) string {
	if len(note) <= limit {
		return strings.ToValidUTF8(note, "\uFFFD")
	}
	return strings.ToValidUTF8(note[:limit-len("…")], "") + "…"
}

// CamelCase returns the name of a step as the API accepts it for the action of an event or the type of a condition. A name
// without letters and digits becomes "Reconcile".
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
