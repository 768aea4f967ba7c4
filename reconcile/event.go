package reconcile

import (
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/eventnote"
)

// event tells what happened to the object; not without a manager, which has the recorder. The
// action is a step's name in CamelCase.
func (p *pass[T]) event(eventType, reason, action, note string) {
	if p.recorder == nil {
		return
	}
	p.recorder.Eventf(p.before, nil, eventType, reason, camelCase(action), "%s", eventnote.Cut(note))
}

func (p *pass[T]) isReady(obj T) bool {
	list := p.conditions(obj)
	if list == nil {
		return false
	}
	c, _ := list.Get(conditions.Ready)
	return c.Status == metav1.ConditionTrue
}

// conditions is nil where there are none.
func (p *pass[T]) conditions(obj T) conditions.List {
	list, err := p.list(obj)
	if err != nil {
		return nil
	}
	return list
}

func camelCase(name string) string {
	var b strings.Builder
	upper := true
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			upper = true
			continue
		}
		if upper {
			r = unicode.ToUpper(r)
		}
		b.WriteRune(r)
		upper = false
	}
	if b.Len() == 0 {
		return "Reconcile"
	}
	return b.String()
}
