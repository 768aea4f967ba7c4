package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// trace records what happens in a run, and prints it as a table.
type trace struct {
	mu     sync.Mutex
	begun  time.Time // the time of the first row
	rows   []row
	phases []int // the index of the first row of each
}

// row is one line of the table. A request is formatted when the table is printed, since its answer is set later.
type row struct {
	at     time.Duration // the time since the first row
	pass   int           // 0: outside of passes
	what   string
	answer string
	fault  kinds.Fault // the injected fault; call has the fault of a request
	call   *call       // nil: the row is not a request
	change string      // the change of an object; such a row is not shown

	changed *memoryserver.Change // nil: the row is not a change
}

func (t *trace) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.at = t.now()
	t.rows = append(t.rows, r)
}

// length returns how many rows there are.
func (t *trace) length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows)
}

// cut removes all rows but the first ones.
func (t *trace) cut(length int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = t.rows[:length]
}

// addBefore adds a row before the last one, which is the request that is being sent.
func (t *trace) addBefore(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.at = t.now()
	t.rows = slices.Insert(t.rows, len(t.rows)-1, r)
}

// now returns the virtual time since the first row. The caller holds the lock.
func (t *trace) now() time.Duration {
	if t.begun.IsZero() {
		t.begun = time.Now()
	}
	return time.Since(t.begun)
}

// beginPhase begins a new part of the trace, which can be printed without the parts before it.
func (t *trace) beginPhase() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases = append(t.phases, len(t.rows))
}

// Beginnings of rows.
const (
	passPrefix = "pass over "
	userPrefix = "user: "
)

// How many lines of a long table are shown at its beginning and at its end.
const (
	firstRows = 60
	lastRows  = 20
)

// Widths of cells, in characters. A wider description is wider than its column; a longer answer is cut off.
const (
	maxWhatWidth   = 64
	maxAnswerWidth = 160
)

// faults returns how many faults were injected.
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

// String returns the table, without passes that sent nothing.
func (t *trace) String() string { return t.from(0, false) }

// sinceFault returns the table from the action on in which the first fault was injected. It shows only the first line
// of each earlier action.
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
	return t.from(begin, true)
}

// lastPassWith returns the table of the last pass that sent the request.
func (t *trace) lastPassWith(request string) string {
	for i, row := range slices.Backward(t.rows) {
		if call := row.call; call != nil && call.String() == request {
			for begin := i; begin >= 0; begin-- {
				if strings.HasPrefix(t.rows[begin].what, passPrefix) {
					only := &trace{rows: t.rows[begin:t.endOfPass(begin)]}
					return only.String()
				}
			}
		}
	}
	return ""
}

// endOfPass returns the index after the last row of the pass that begins at the index.
func (t *trace) endOfPass(begin int) int {
	end := begin + 1
	for end < len(t.rows) && t.rows[end].pass == t.rows[begin].pass {
		end++
	}
	return end
}

// from returns the table from a row on. short leaves out the middle of a long one.
func (t *trace) from(begin int, short bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines [][3]string
	repeated := map[int]int{} // how often a line is repeated directly after itself
	widest := 0
	for i := range t.rows {
		line, shown := t.rows[i].cells()
		before := i < begin && !strings.HasPrefix(t.rows[i].what, userPrefix)
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
		if n := utf8.RuneCountInString(line[1]); n <= maxWhatWidth {
			widest = max(widest, n)
		}
	}
	var b strings.Builder
	for i, line := range lines {
		if left := len(lines) - firstRows - lastRows; short && left > 1 && i >= firstRows && i < firstRows+left {
			if i == firstRows {
				fmt.Fprintf(&b, "      … %d lines are left out; the page has them all …\n", left)
			}
			continue
		}
		if n := repeated[i]; n > 0 {
			line[2] += fmt.Sprintf(" (%s)", Plural(n+1, "time"))
		}
		text := fmt.Sprintf("%-4s  %-*s  %s", line[0], widest, line[1], line[2])
		b.WriteString(strings.TrimRight(text, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// isSilent reports whether a row begins a pass that has no other row to show.
func (t *trace) isSilent(i int) bool {
	if !strings.HasPrefix(t.rows[i].what, passPrefix) {
		return false
	}
	for _, r := range t.rows[i+1:] {
		if strings.HasPrefix(r.what, passPrefix) {
			break
		}
		if _, shown := r.cells(); shown && r.pass == t.rows[i].pass {
			return false
		}
	}
	return true
}

func (r *row) isFault() bool { return r.fault != "" || r.call != nil && r.call.Fault != "" }

// cells returns the row's cells: the pass, what happened, and the answer. A read of the cache is shown only if the cache
// was behind and the read was part of a pass: when event handlers read, the cache is often behind, since other events
// follow.
func (r *row) cells() (cells [3]string, shown bool) {
	if r.change != "" {
		return cells, false
	}
	if r.pass > 0 {
		cells[0] = fmt.Sprint(r.pass)
	}
	cells[1], cells[2] = r.what, r.answer
	fault := r.fault
	if r.call != nil {
		if r.call.Cached && (r.call.Behind == 0 || r.call.Pass == 0) {
			return cells, false
		}
		cells[1], cells[2] = "  "+r.call.String(), r.call.answer()
		fault = kinds.Fault(r.call.Fault)
	}
	cells[2] = Shorten(cells[2], maxAnswerWidth)
	if fault != "" {
		cells[2] += "   ← " + ruleOf(fault).words
	}
	return cells, true
}

// Shorten returns the text, cut off after the given number of characters, with "…" if something was cut off.
func Shorten(text string, to int) string {
	if runes := []rune(text); len(runes) > to {
		return string(runes[:to]) + "…"
	}
	return text
}

// changesBefore returns the rows of the changes between the given pass and the previous one over the same object.
func (t *trace) changesBefore(pass int) []row {
	t.mu.Lock()
	defer t.mu.Unlock()
	var over string
	var changes []row
	for _, row := range t.rows {
		if row.pass == pass && strings.HasPrefix(row.what, passPrefix) {
			over = row.what
		}
	}
	for _, row := range t.rows {
		switch {
		case row.pass == pass:
			return changes
		case row.what == over:
			changes = nil
		case row.change != "":
			changes = append(changes, row)
		}
	}
	return changes
}
