// Package eventnote makes texts storable as an event's note.
package eventnote

import "strings"

// limit is the API's, in bytes. A longer note is refused, and the event lost.
const limit = 1024

// Cut gives the note, or as much of it as may be stored.
func Cut(note string) string {
	if len(note) <= limit {
		return strings.ToValidUTF8(note, "\uFFFD")
	}
	return strings.ToValidUTF8(note[:limit-len("…")], "") + "…"
}
