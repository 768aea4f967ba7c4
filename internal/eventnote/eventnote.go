// Package eventnote shortens texts to what the API accepts as the note of an event.
package eventnote

import "strings"

// limit is the API's limit in bytes. An event with a longer note is refused, and so it is lost.
const limit = 1024

// Cut returns the note, shortened to the limit if it is longer, as valid UTF-8.
func Cut(note string) string {
	if len(note) <= limit {
		return strings.ToValidUTF8(note, "\uFFFD")
	}
	return strings.ToValidUTF8(note[:limit-len("…")], "") + "…"
}
