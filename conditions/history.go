package conditions

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// History returns a list that is a history as a [List], for code that sets conditions by type: Set appends as [Append] does,
// Get gives the newest of a type, and Remove does nothing, since what was so stays told. Changes go to *list, which must not
// be nil. A limit below 1 is an error of Set.
func History(list *[]metav1.Condition, limit int) List { return standard.History(list, limit) }

// History is [History] over a list of C.
func (e Editor[C]) History(list *[]C, limit int) List {
	return history[C]{bound[C]{editor: e, list: list}, limit}
}

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
	changed, err := h.editor.Append(h.list, c, h.limit)
	stored, _ := h.Get(c.Type)
	return stored, changed, err
}

func (h history[C]) Remove(string) bool { return false }

// Append is for APIs whose list is a history, oldest first. It adds c unless the last entry has its type, status, reason
// and message, and drops the oldest entries until no more than limit are left, which has to be 1 or more.
//
// Times and messages are treated as by [Set]: the transition time is now unless c brings one. The slice is replaced, never
// written into. The error is [ErrInvalid], and the list is unchanged then.
func Append(list *[]metav1.Condition, c metav1.Condition, limit int) (changed bool, err error) {
	return standard.Append(list, c, limit)
}

// Append is [Append] over a list of C.
func (e Editor[C]) Append(list *[]C, c metav1.Condition, limit int) (changed bool, err error) {
	switch {
	case list == nil:
		return false, fmt.Errorf("%w %q: there is no list to append it to; pass its address, such as &obj.Status.Conditions", ErrInvalid, c.Type)
	case limit < 1:
		return false, fmt.Errorf("%w %q: a history of %d entries: keep at least 1", ErrInvalid, c.Type, limit)
	}
	c.Message = cut(c.Message)
	if err := e.validate(c); err != nil {
		return false, fmt.Errorf("%w %q: %w", ErrInvalid, c.Type, err)
	}
	c.LastTransitionTime = e.moment(c.LastTransitionTime, metav1.Time{})
	var entry C
	entry = e.adapter.Write(entry, c, c.LastTransitionTime)
	if n := len(*list); n > 0 && sameWords(e.adapter.Read((*list)[n-1]), e.adapter.Read(entry)) {
		return false, nil
	}
	kept := (*list)[max(0, len(*list)+1-limit):]
	*list = append(append(make([]C, 0, len(kept)+1), kept...), entry)
	return true, nil
}

func sameWords(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}
