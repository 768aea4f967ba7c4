package conditions

import (
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
