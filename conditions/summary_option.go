package conditions

// SummaryOption is a choice for [Summarize].
type SummaryOption func(*summary)

// ForTypes limits the summary to these types, in this order; those that the list lacks are Unknown.
// Reconciling and Stalled then count only if they are named. Over() with no type is no limit.
func ForTypes(types ...string) SummaryOption {
	return func(s *summary) { s.over = append(s.over, types...) }
}

// NegativePolarity names types that are good when False or absent, such as Degraded. They count also when [ForTypes] does not name
// them, after those that it does. Reconciling and Stalled are always negative.
func NegativePolarity(types ...string) SummaryOption {
	return func(s *summary) {
		s.negative = append(s.negative, types...)
		s.named = append(s.named, types...)
	}
}

// TargetType gives the summary another type than Ready. A condition of that type is not part of its own summary.
func TargetType(conditionType string) SummaryOption {
	return func(s *summary) { s.as = conditionType }
}

// Success gives a True summary another reason than Succeeded, and a message, which is empty otherwise.
func Success(reason, message string) SummaryOption {
	return func(s *summary) { s.reason, s.message = reason, message }
}
