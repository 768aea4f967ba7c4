package conditions

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// History returns a [List] for a list that is a history, oldest entry first. The methods change *list.
//
// Its Set adds the condition at the end. If the last entry has the same type, status, reason and message, it adds nothing. If
// the list then has more than limit entries, the oldest entries are dropped. LastTransitionTime of the new entry is the
// LastTransitionTime of the condition in whole seconds. If it is zero, it becomes the current time. Messages are cut as in the
// function [Set]. A change replaces the slice; the old array is never written to. The error wraps [ErrInvalid] (test with
// errors.Is), and the list is then unchanged. A nil pointer and a limit below 1 are errors too.
//
// Its Get returns the newest condition of a type. Its Remove does nothing and returns false, because a history is not rewritten.
func History(list *[]metav1.Condition, limit int) List { return standard.History(list, limit) }

// add adds a condition to a history, and drops the oldest entries beyond the limit. It adds nothing if the last entry
// is the same.
func (e Editor[C]) add(list *[]C, c metav1.Condition, limit int) (changed bool, err error) {
	switch {
	case list == nil:
		return false, errNilList(c.Type)
	case limit < 1:
		return false, fmt.Errorf("%w %q: the limit of the history is %d: keep at least 1 entry", ErrInvalid, c.Type, limit)
	}
	c.Message = truncate(c.Message)
	if err := e.validate(c); err != nil {
		return false, fmt.Errorf("%w %q: %w", ErrInvalid, c.Type, err)
	}
	c.LastTransitionTime = e.changeTime(c.LastTransitionTime, metav1.Time{})
	var entry C
	entry = e.adapter.Write(entry, c, c.LastTransitionTime)
	if n := len(*list); n > 0 && sameEntry(e.adapter.Read((*list)[n-1]), e.adapter.Read(entry)) {
		return false, nil
	}
	kept := (*list)[max(0, len(*list)+1-limit):]
	*list = append(append(make([]C, 0, len(kept)+1), kept...), entry)
	return true, nil
}

// History is like the function [History], for a list of C.
func (e Editor[C]) History(list *[]C, limit int) List {
	return history[C]{bound[C]{editor: e, list: list}, limit}
}

// sameEntry reports whether b has the same type, status, reason and message as a. It ignores times and generations.
func sameEntry(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// history is the [List] that History returns. The embedded bound has its method All.
type history[C any] struct {
	bound[C]
	limit int
}

func (h history[C]) Get(conditionType string) (metav1.Condition, bool) {
	for _, entry := range slices.Backward(*h.list) {
		if c := h.editor.adapter.Read(entry); c.Type == conditionType {
			return c, true
		}
	}
	return metav1.Condition{}, false
}

func (h history[C]) Set(c metav1.Condition) (metav1.Condition, bool, error) {
	changed, err := h.editor.add(h.list, c, h.limit)
	if h.list == nil {
		return metav1.Condition{}, false, err
	}
	stored, _ := h.Get(c.Type)
	return stored, changed, err
}

func (h history[C]) Remove(string) bool { return false }
