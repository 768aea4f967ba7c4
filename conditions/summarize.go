package conditions

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types with a fixed meaning in kstatus, https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md.
const (
	// Ready sums up the others: the object does what its spec says.
	Ready = "Ready"
	// Reconciling is True while the controller works towards the spec; absent or False otherwise.
	Reconciling = "Reconciling"
	// Stalled is True when the controller cannot get on without a change from outside; absent or False otherwise.
	Stalled = "Stalled"
	// Paused is True while reconciling is paused on request, and absent otherwise.
	Paused = "Paused"
)

// Reasons of a summary that no part gives.
const (
	// ReasonSucceeded: every part is good. [Success] replaces it.
	ReasonSucceeded = "Succeeded"
	// ReasonFailed: the worst part is bad and has no reason of its own.
	ReasonFailed = "Failed"
	// ReasonUnknown: the worst part is unknown and has no reason of its own.
	ReasonUnknown = "Unknown"
	// ReasonMissing: a type named by [ForTypes] is not in the list.
	ReasonMissing = "Missing"
	// ReasonNoConditions: the list holds nothing to sum up.
	ReasonNoConditions = "NoConditions"
)

// Summarize returns one condition that sums up others; pass it to [Set] to store it.
//
// A positive part is good when True, a negative one when False or absent. One bad part makes the summary False; else one
// Unknown part, or a positive one that [ForTypes] names and the list lacks, makes it Unknown; else it is True.
// No part in the list at all is Unknown: an object that nobody has looked at is not ready.
//
// Reason and message come from the worst part. If several are equally bad, the reason is that of the first, and the
// message "Type: message; Type: message" in order, the reason standing in for an empty message.
//
// ObservedGeneration is the lowest that a part carries, since the summary is as old as its oldest part; parts without
// one do not count. LastTransitionTime is left zero for Set.
//
// Defaults: type Ready, over everything in the list but the summary itself, in the list's order; Reconciling and
// Stalled are negative, as kstatus has them; a True summary has the reason Succeeded and no message.
func Summarize(list []metav1.Condition, options ...SummaryOption) metav1.Condition {
	s := summary{as: Ready, negative: []string{Reconciling, Stalled}, reason: ReasonSucceeded}
	for _, o := range options {
		o(&s)
	}
	return s.of(list)
}

// Summarize is [Summarize] over a list of C.
func (e Editor[C]) Summarize(list []C, options ...SummaryOption) metav1.Condition {
	return Summarize(e.read(list), options...)
}

type summary struct {
	as, reason, message string
	over                []string
	negative, named     []string // named are those that an option added
}

func (s *summary) of(list []metav1.Condition) metav1.Condition {
	sum := metav1.Condition{Type: s.as, Status: metav1.ConditionTrue, Reason: s.reason, Message: s.message}
	var failed, unknown []metav1.Condition
	found := false
	for _, t := range s.types(list) {
		part, ok := Get(list, t)
		negative := slices.Contains(s.negative, t)
		if !ok {
			if !negative {
				unknown = append(unknown, metav1.Condition{Type: t, Reason: ReasonMissing, Message: "no " + t + " condition yet"})
			}
			continue
		}
		found = true
		if g := part.ObservedGeneration; g > 0 && (sum.ObservedGeneration == 0 || g < sum.ObservedGeneration) {
			sum.ObservedGeneration = g
		}
		switch {
		case part.Status != metav1.ConditionTrue && part.Status != metav1.ConditionFalse:
			unknown = append(unknown, part)
		case negative == (part.Status == metav1.ConditionTrue):
			failed = append(failed, part)
		}
	}
	switch {
	case len(failed) > 0:
		sum.Status = metav1.ConditionFalse
		sum.Reason, sum.Message = worst(failed, ReasonFailed)
	case len(unknown) > 0:
		sum.Status = metav1.ConditionUnknown
		sum.Reason, sum.Message = worst(unknown, ReasonUnknown)
	case !found:
		sum.Status = metav1.ConditionUnknown
		sum.Reason, sum.Message = ReasonNoConditions, "no conditions reported yet"
	}
	sum.Message = cut(sum.Message)
	return sum
}

// types returns what to sum up, each once and in order: what Over names, or else the list; then what Negative names.
func (s *summary) types(list []metav1.Condition) []string {
	all := slices.Clone(s.over)
	if len(all) == 0 {
		for _, c := range list {
			all = append(all, c.Type)
		}
	}
	all = append(all, s.named...)
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(t string) bool {
		skip := t == s.as || seen[t]
		seen[t] = true
		return skip
	})
}

func worst(parts []metav1.Condition, fallback string) (reason, message string) {
	reason = parts[0].Reason
	if reason == "" {
		reason = fallback
	}
	if len(parts) == 1 {
		return reason, parts[0].Message
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		text := p.Message
		if text == "" {
			text = p.Reason
		}
		texts[i] = strings.TrimSuffix(p.Type+": "+text, ": ")
	}
	return reason, strings.Join(texts, "; ")
}

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
