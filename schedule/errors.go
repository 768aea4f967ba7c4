package schedule

import (
	"fmt"
	"strings"
)

// Error is the type of every error of this package; find it with errors.As. It means that the input is wrong, and that retrying does not
// help until somebody changes it. The message names the field, its value and what to write instead. It is the same in every reconcile, so it
// can be the message of a condition.
type Error struct {
	// Field is the path of the field that is wrong, as in JSON: schedule, timeZone, startingDeadlineSeconds,
	// blackoutWindows[0].start. For an [Input] that the program filled in wrongly it is schedule, since or offset.
	Field string
	err   error
}

// newError returns an [Error]. The format continues the message after the field, and so starts with a space or a colon.
func newError(field, format string, args ...any) error {
	return &Error{field, fmt.Errorf("invalid "+field+format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that explains why the value is wrong.
func (e *Error) Unwrap() error { return e.err }

// Reason returns the reason for a condition: "Invalid" and the name of the top-level field, such as InvalidSchedule,
// InvalidTimeZone or InvalidBlackoutWindows.
func (e *Error) Reason() string {
	field, _, _ := strings.Cut(e.Field, "[")
	return "Invalid" + strings.ToUpper(field[:1]) + field[1:]
}

// quote returns the value in quotes, and cuts it if it is long, so that the message stays readable.
func quote(value string) string {
	const maxRunes = 60
	if runes := []rune(value); len(runes) > maxRunes {
		return fmt.Sprintf("%q…", string(runes[:maxRunes]))
	}
	return fmt.Sprintf("%q", value)
}
