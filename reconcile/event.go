package reconcile

import (
	"strings"
	"unicode"

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
