package reconciletest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// trace is what happened in a run.
type trace struct {
	mu     sync.Mutex
	rows   []row
	phases []int // where they begin
}

// row is one line of the table. A request is described when it is printed: its answer comes later.
type row struct {
	process int
	pass    int
	what    string
	answer  string
	fault   string
	request *Request
	change  string // of an object; not shown, unless it is a fault
}

func (t *trace) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

// addBefore adds a row before the last one, which has already begun.
func (t *trace) addBefore(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = slices.Insert(t.rows, len(t.rows)-1, r)
}

// phase begins a new part of the trace, which can be shown without those before it.
func (t *trace) phase() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases = append(t.phases, len(t.rows))
}

// cell widths of the table, beyond which text sticks out.
const (
	widestWhat   = 64
	widestAnswer = 160
)

// faults gives how many came to be.
func (t *trace) faults() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.rows {
		if t.rows[i].isFault() {
			n++
		}
	}
	return n
}

// String gives the table, without passes that sent nothing.
func (t *trace) String() string { return t.from(0) }

// sinceFault is the table from the action on in which the first fault struck.
func (t *trace) sinceFault() string {
	begin := 0
	for i := range t.rows {
		if t.rows[i].isFault() {
			for _, phase := range t.phases {
				if phase <= i {
					begin = phase
				}
			}
			break
		}
	}
	return t.from(begin)
}

func (t *trace) from(begin int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines [][3]string
	repeated := map[int]int{} // how often a line comes again at once
	widest := 0
	for i := range t.rows {
		line, shown := t.rows[i].cells()
		before := i < begin && !strings.HasPrefix(t.rows[i].what, "user: ")
		if !shown || before || t.isSilent(i) {
			continue
		}
		if i < begin {
			line[2] = "as without the fault"
		}
		if last := len(lines) - 1; last >= 0 && lines[last] == line {
			repeated[last]++
			continue
		}
		lines = append(lines, line)
		if n := utf8.RuneCountInString(line[1]); n <= widestWhat {
			widest = max(widest, n)
		}
	}
	var b strings.Builder
	for i, line := range lines {
		if n := repeated[i]; n > 0 {
			line[2] += fmt.Sprintf(" (%s)", plural(n+1, "time"))
		}
		text := fmt.Sprintf("%-4s  %-*s  %s", line[0], widest, line[1], line[2])
		b.WriteString(strings.TrimRight(text, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// isSilent reports whether a row is the beginning of a pass that sent nothing.
func (t *trace) isSilent(i int) bool {
	if !strings.HasPrefix(t.rows[i].what, "pass over ") {
		return false
	}
	for _, r := range t.rows[i+1:] {
		if strings.HasPrefix(r.what, "pass over ") {
			break
		}
		if _, shown := r.cells(); shown && r.pass == t.rows[i].pass {
			return false
		}
	}
	return true
}

func (r *row) isFault() bool { return r.fault != "" || r.request != nil && r.request.Fault != "" }

// cells gives pass, what happened, and what came of it. Reads of a cache that was up to date are not shown, nor
// those of event handlers, while other events are on their way.
func (r *row) cells() (cells [3]string, shown bool) {
	if r.change != "" {
		return cells, false
	}
	if r.pass > 0 {
		cells[0] = fmt.Sprint(r.pass)
	}
	cells[1], cells[2] = r.what, r.answer
	fault := r.fault
	if r.request != nil {
		if r.request.Cached && (r.request.Behind == 0 || r.request.Pass == 0) {
			return cells, false
		}
		cells[1], cells[2] = "  "+r.request.String(), r.request.answer()
		fault = r.request.Fault
	}
	cells[2] = shortened(cells[2], widestAnswer)
	if fault != "" {
		cells[2] += "   ← " + faultWords(FaultKind(fault))
	}
	return cells, true
}

func shortened(text string, to int) string {
	if runes := []rune(text); len(runes) > to {
		return string(runes[:to]) + "…"
	}
	return text
}

func faultWords(kind FaultKind) string {
	words := map[FaultKind]string{
		CrashBefore:         "the process dies before it is sent",
		CrashAfter:          "it is done, and the process dies before it knows",
		CrashDowntime:       "it is done, and the process is dead until after the user's next action",
		CrashUnseen:         "it is done, and the process dies; the next one does not see it for one pass",
		CrashDowntimeUnseen: "it is done, and the process is dead until after the user's next action; the next one does not see it for one pass",
		ConcurrentAction:    "the user does the next thing just before",
		Timeout:             "it is done, and the answer is lost",
		Conflict:            "somebody else wrote just before",
		TooManyRequests:     "refused by the server",
		InternalError:       "refused by the server",
		ConnectionRefused:   "it does not reach the server",
		AlreadyExists:       "it is done, and the client's second attempt is answered",
		NotFound:            "somebody else deleted it just before",
		LeaderChange:        "another replica takes over before it is sent",
		Stale:               "not seen for one pass",
		StaleLong:           "not seen for two passes",
		MissedEvent:         "not seen until all is quiet",
		TimeTravel:          "seen as it was then for one pass",
	}
	return words[kind]
}
