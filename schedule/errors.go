package schedule

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Error is the type of every error of this package; find it with errors.As. It means that the input is invalid. A retry does not help until
// somebody changes the input. The message names the field, its value and what to write instead. The message is the same in every reconcile,
// so it can be the message of a condition.
type Error struct {
	// Field is the path of the wrong field, as in JSON: schedule, timeZone, startingDeadlineSeconds,
	// blackoutWindows[0].start. If the mistake is in the program, which passes an invalid [Input], it is schedule,
	// since or offset.
	Field string
	value any // nil if the error is not only about the value
	err   error
}

// newError returns an [Error]. value may be nil. format says what is wrong with value, and what to write instead.
func newError(path string, value any, format string, args ...any) error {
	return &Error{path, value, fmt.Errorf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string {
	switch value := e.value.(type) {
	case nil:
		return fmt.Sprintf("invalid %s: %v", e.Field, e.err)
	case string:
		return fmt.Sprintf("invalid %s %s: %v", e.Field, quote(value), e.err)
	default:
		return fmt.Sprintf("invalid %s %v: %v", e.Field, value, e.err)
	}
}

// Unwrap returns the error that explains why the value is wrong.
func (e *Error) Unwrap() error { return e.err }

// Reason returns the reason for a condition: "Invalid" and the name of the top-level field, such as InvalidSchedule,
// InvalidTimeZone or InvalidBlackoutWindows.
func (e *Error) Reason() string {
	field, _, _ := strings.Cut(e.Field, "[")
	return "Invalid" + strings.ToUpper(field[:1]) + field[1:]
}

// At returns the error as a *field.Error. path is the path of the struct that has the field, such as field.NewPath("spec"). A
// long value is shortened.
func (e *Error) At(path *field.Path) *field.Error {
	value := e.value
	switch v := value.(type) {
	case nil:
		value = field.OmitValueType{}
	case string:
		value, _ = cut(v)
	}
	return field.Invalid(path.Child(e.Field), value, e.err.Error())
}

// quote returns the value in quotes. It shortens a long value, so that the message stays readable.
func quote(value string) string {
	if short, isCut := cut(value); isCut {
		return fmt.Sprintf("%q…", short)
	}
	return fmt.Sprintf("%q", value)
}

// cut returns the value, or the beginning of a long value, and whether it was shortened.
func cut(value string) (short string, isCut bool) {
	const maxRunes = 60
	if runes := []rune(value); len(runes) > maxRunes {
		return string(runes[:maxRunes]), true
	}
	return value, false
}
