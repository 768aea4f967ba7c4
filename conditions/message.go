package conditions

import (
	"strings"
	"unicode/utf8"
)

// maxMessage is metav1.Condition's limit. The schema counts characters, apimachinery's validation bytes: bytes satisfy both.
const maxMessage = 32 * 1024

// cut makes a message storable. Invalid UTF-8 goes here because JSON would replace it on the way out,
// and what comes back would then differ from what is set, on every pass.
func cut(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	end := maxMessage - len(mark)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + mark
}
