package conditions

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. Reconciling and Stalled have the meaning that kstatus defines:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md.
const (
	// Ready is True if the object is as its spec demands. [Summarize] computes it from other conditions. Package reconcile
	// computes it from the results of all steps, also of steps without a condition.
	Ready = "Ready"
	// Reconciling is True while the controller works on the spec, and otherwise absent or False.
	Reconciling = "Reconciling"
	// Stalled is True if the controller makes no progress until something else changes, and otherwise absent or False.
	Stalled = "Stalled"
	// Paused is True while reconciling is paused on request, and otherwise absent.
	Paused = "Paused"
)

// ReasonSucceeded is the reason of a True summary, unless [Summary.Reason] is another one.
const ReasonSucceeded = "Succeeded"

// The reasons of other summaries, if no summarized condition supplies one.
const (
	reasonFailed       = "Failed"       // a deciding condition is False, or True if it is negative, and has no reason
	reasonUnknown      = "Unknown"      // a deciding condition is Unknown and has no reason
	reasonMissing      = "Missing"      // the list lacks a type that Summary.Types names
	reasonNoConditions = "NoConditions" // the list has no condition to sum up
)

// Summary says how [Summarize] sums up conditions. The zero value is for the condition Ready, over all conditions of the list.
type Summary struct {
	// Type is the type of the summary. The default is Ready. A condition of this type is never part of its own summary.
	Type string
	// Types limits the summary to these types, in this order. If the list lacks one of these types, the type counts as Unknown, unless it
	// is negative. Reconciling and Stalled are then part of the summary only if they are named. The default is all types of the list.
	Types []string
	// Negative are types that are good if False or absent, such as Degraded. They are part of the summary even if Types does not name them.
	// Then they come after the types that it names. Reconciling and Stalled are always negative.
	Negative []string
	// A True summary has this Reason and Message. The defaults are [ReasonSucceeded] and no message.
	Reason, Message string
}

// Summarize sums up the conditions of a list in one condition. It stores nothing; pass the result to [Set].
//
// A condition with positive polarity is good if True. A condition with negative polarity, such as Stalled, is good if
// False or absent. The summary is
//
//	False    if a condition is bad
//	Unknown  if none is bad, and a condition is Unknown, or one that Types names is absent and not negative
//	Unknown  if the list has no condition to sum up: an object that no controller has looked at is not ready
//	True     otherwise
//
// Reason and message come from the condition that decides: a bad one, or an Unknown one if none is bad. If there are
// several, the reason comes from the first, and the message is "Type: message; Type: message" in their order. For a
// condition without a message, its reason takes the place of the message. A message that exceeds the API's limit of
// 32768 bytes is cut.
//
// ObservedGeneration is the lowest observed generation of the summarized conditions, because the summary is only as
// recent as the oldest condition. Conditions without an observed generation are ignored. LastTransitionTime is zero;
// [Set] fills it in.
func Summarize(list []metav1.Condition, s Summary) metav1.Condition {
	s.Type = cmp.Or(s.Type, Ready)
	sum := metav1.Condition{Type: s.Type, Status: metav1.ConditionTrue, Reason: cmp.Or(s.Reason, ReasonSucceeded), Message: s.Message}
	var bad, unknown []metav1.Condition
	found := false
	for _, t := range s.types(list) {
		c, ok := Get(list, t)
		negative := t == Reconciling || t == Stalled || slices.Contains(s.Negative, t)
		if !ok {
			if !negative {
				unknown = append(unknown, metav1.Condition{Type: t, Reason: reasonMissing, Message: "no " + t + " condition yet"})
			}
			continue
		}
		found = true
		if g := c.ObservedGeneration; g > 0 && (sum.ObservedGeneration == 0 || g < sum.ObservedGeneration) {
			sum.ObservedGeneration = g
		}
		switch {
		case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse:
			unknown = append(unknown, c)
		case negative == (c.Status == metav1.ConditionTrue):
			bad = append(bad, c)
		}
	}
	switch {
	case len(bad) > 0:
		sum.Status = metav1.ConditionFalse
		sum.Reason, sum.Message = explain(bad, reasonFailed)
	case len(unknown) > 0:
		sum.Status = metav1.ConditionUnknown
		sum.Reason, sum.Message = explain(unknown, reasonUnknown)
	case !found:
		sum.Status = metav1.ConditionUnknown
		sum.Reason, sum.Message = reasonNoConditions, "no conditions reported yet"
	}
	sum.Message = truncate(sum.Message)
	return sum
}

// Summarize is like the function [Summarize], for a list of C.
func (e Editor[C]) Summarize(list []C, s Summary) metav1.Condition { return Summarize(e.read(list), s) }

// types returns the types to sum up, each once: first Types, or else the types of the list; then Negative.
func (s Summary) types(list []metav1.Condition) []string {
	all := slices.Clone(s.Types)
	if len(all) == 0 {
		for _, c := range list {
			all = append(all, c.Type)
		}
	}
	all = append(all, s.Negative...)
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(t string) bool {
		skip := t == s.Type || seen[t]
		seen[t] = true
		return skip
	})
}

// explain returns reason and message of a summary. They come from the conditions that decide the summary, or the
// reason is fallback.
func explain(deciding []metav1.Condition, fallback string) (reason, message string) {
	reason = deciding[0].Reason
	if reason == "" {
		reason = fallback
	}
	if len(deciding) == 1 {
		return reason, deciding[0].Message
	}
	texts := make([]string, len(deciding))
	for i, c := range deciding {
		text := c.Message
		if text == "" {
			text = c.Reason
		}
		texts[i] = strings.TrimSuffix(c.Type+": "+text, ": ")
	}
	return reason, strings.Join(texts, "; ")
}
