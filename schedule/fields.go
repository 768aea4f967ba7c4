package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// fieldRule says what one of the five fields of a schedule accepts.
type fieldRule struct {
	name, allowed string
	first, last   int
	names         string // names of the values, three letters each; the first is the name of the value first
	unit          string // the unit of the field in @every, if it has one
}

var fieldRules = [...]fieldRule{
	{"minute", "0 to 59", 0, 59, "", "m"},
	{"hour", "0 to 23", 0, 23, "", "h"},
	{"day of month", "1 to 31", 1, 31, "", ""},
	{"month", "1 to 12 or JAN to DEC", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", ""},
	{"day of week", "0 to 6 or SUN to SAT, where Sunday is 0", 0, 6, "SUNMONTUEWEDTHUFRISAT", ""},
}

// check returns an error that names the field, the entry and what to write instead. It accepts what robfig's parser accepts,
// except where that parser understands something else than the user meant: that parser ignores an empty entry, and the
// end of a range after a star. It reads +5 as 5. With a step that is too large it matches only the first value.
func (r fieldRule) check(field string) error {
	for entry := range strings.SplitSeq(field, ",") {
		if err := r.checkEntry(entry); err != nil {
			return fmt.Errorf("%s %s: %w", r.name, quote(field), err)
		}
	}
	return nil
}

func (r fieldRule) checkEntry(entry string) error {
	values, step, hasStep := strings.Cut(entry, "/")
	low, high, isRange := strings.Cut(values, "-")
	star := low == "*" || low == "?"
	if err := r.checkExtension(entry, low); err != nil {
		return err
	}
	switch {
	case entry == "":
		return r.general("a value is missing before or after a comma")
	case star && isRange:
		return r.general("a range cannot begin with a star")
	case isRange && (low == "" || high == ""):
		return r.general("a value is missing before or after a hyphen")
	}
	from, to := r.first, r.last
	if !star {
		var err error
		if from, err = r.value(low); err != nil {
			return err
		}
		if isRange {
			if to, err = r.value(high); err != nil {
				return err
			}
		}
	}
	if from > to {
		return r.general(fmt.Sprintf("the range %s ends before it begins", quote(values)))
	}
	if !hasStep {
		return nil
	}
	count := r.last - r.first + 1 // a step after one value applies to the whole field: 5/60 is once an hour
	if isRange {
		count = to - from + 1
	}
	return r.checkStep(step, count, from, isRange)
}

// checkStep refuses a step that is larger than the number of values, which would leave only the first value. A step that
// equals the number also leaves only the first value, but means what it says: */60 is every 60 minutes, while */90 is not
// every 90.
func (r fieldRule) checkStep(step string, count, from int, isRange bool) error {
	if step == "" || strings.Trim(step, "0123456789") != "" || strings.Trim(step, "0") == "" {
		return r.general(fmt.Sprintf("the step %s is not a number from 1", quote(step)))
	}
	n, err := strconv.Atoi(step)
	if err == nil && n <= count {
		return nil
	}
	of := "the field has"
	if isRange {
		of = "the range has"
	}
	every := ""
	if r.unit != "" && !isRange && err == nil && n < 10000 {
		every = fmt.Sprintf(", or @every %d%s as the whole schedule for an interval of that length", n, r.unit)
	}
	return fmt.Errorf("the step %s is larger than the %d values that %s, so it would match %d alone; write %d if you mean that, "+
		"a step of at most %d%s", quote(step), count, of, from, from, count, every)
}

// checkExtension returns an error if the entry uses the syntax of another scheduler. low is the entry without its step,
// and without the end of its range.
func (r fieldRule) checkExtension(entry, low string) error {
	upper := strings.ToUpper(low)
	before := func(suffix string) bool {
		value, ok := strings.CutSuffix(upper, suffix)
		if !ok || strings.Trim(value, "0123456789") == "" {
			return ok
		}
		_, err := r.value(value)
		return err == nil
	}
	switch {
	case strings.Contains(entry, "#"):
		return errors.New("there is no # (the nth weekday of a month); write the weekday alone, such as FRI, for each week, " +
			"or a day of the month")
	case upper == "H" || strings.HasPrefix(upper, "H("):
		return errors.New("there is no H (a value that differs from object to object); write a value, such as 0, or a step, such " +
			"as */15, and spread the objects by the offset (spreadSeconds)")
	case upper == "LW" || before("W"):
		return errors.New("there is no W (the working day nearest to a date); write a day of the month, or MON-FRI as day of week " +
			"for each working day")
	case before("L"):
		return errors.New("there is no L (the last day); write a day that each month has, 1 to 28, or the weekday alone, such " +
			"as FRI, for each week")
	}
	return nil
}

// value returns the number for a text that is a number or a name.
func (r fieldRule) value(text string) (int, error) {
	if i := strings.Index(r.names, strings.ToUpper(text)); len(text) == 3 && i >= 0 && i%3 == 0 {
		return r.first + i/3, nil
	}
	digits, signed := strings.CutPrefix(text, "+")
	switch {
	case digits == "" || strings.Trim(digits, "0123456789") != "":
		if r.names == "" {
			return 0, r.general(quote(text) + " is not a number")
		}
		return 0, r.general(quote(text) + " is neither a number nor a name")
	case signed:
		return 0, fmt.Errorf("a value has no sign; write %s without the +", quote(digits))
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < r.first || n > r.last {
		return 0, r.general(quote(text) + " is out of range")
	}
	return n, nil
}

// general returns an error that begins with the problem and ends with what the field accepts.
func (r fieldRule) general(problem string) error {
	return fmt.Errorf("%s; write *, or %s, as list (a,b), range (a-b) or with a step (*/n)", problem, r.allowed)
}
