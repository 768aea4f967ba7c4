package schedule

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of a schedule and its options, for the validator of a webhook. path is the path of the struct that has the
// fields, such as field.NewPath("spec"). least is the shortest interval between two scheduled times that the operator allows: see
// [CheckInterval]. Pass 0 for no limit.
//
// [Status.Decide] and CheckInterval refuse the same input, but return only the first error.
func Validate(schedule string, options Options, least time.Duration, path *field.Path) (errs field.ErrorList) {
	add := func(err error) {
		if invalid, ok := errors.AsType[*Error](err); ok {
			errs = append(errs, invalid.At(path))
		}
	}
	add(CheckInterval(schedule, least)) // it parses the schedule too
	_, err := loadTimeZone(options.TimeZone)
	add(err)
	add(checkDeadline(options.StartingDeadlineSeconds))
	for _, err := range checkWindows(options.BlackoutWindows) {
		add(err)
	}
	return errs
}

// checkWindows returns the first error of each window. If no window has an error, it returns the error of all windows together.
func checkWindows(windows []BlackoutWindow) (errs []error) {
	for i, w := range windows {
		if _, err := w.spans(fmt.Sprintf("blackoutWindows[%d]", i)); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		_, err := ParseBlackoutWindows("", windows...)
		errs = append(errs, err)
	}
	return errs
}

// shortDeadline is the shortest starting deadline, in seconds, for which Warnings returns no warning. With a shorter deadline, a
// busy operator loses runs.
const shortDeadline = 10

// Warnings returns warnings for a webhook, about input that is valid but probably a mistake: a starting deadline below ten seconds. path
// is the path of the struct that has the fields.
func Warnings(options Options, path *field.Path) (warnings []string) {
	if deadline := options.StartingDeadlineSeconds; deadline != nil && *deadline >= 0 && *deadline < shortDeadline {
		warnings = append(warnings, fmt.Sprintf("%s: runs are lost while the operator is busy for %d s; write %d or more",
			path.Child("startingDeadlineSeconds"), *deadline, shortDeadline))
	}
	return warnings
}
