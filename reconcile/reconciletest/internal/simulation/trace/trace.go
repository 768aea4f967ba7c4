// Package trace records what happens in a run. A [Trace] prints it as a table. timeline.go returns it for the page that shows the run.
package trace

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Trace records what happens in a run, and prints it as a table.
type Trace struct {
	mu     sync.Mutex
	begun  time.Time // the time of the first row
	rows   []Row
	phases []int // the index of the first row of each phase
}

// Row is one line of the table. A request is formatted when the table is printed, since its answer is set later.
type Row struct {
	at     time.Duration // the time since the first row
	Pass   int           // 0: outside of passes
	What   string
	Answer string
	Fault  kinds.Fault   // the injected fault; if the row is a request, Call has the fault instead
	Call   *request.Call // nil: the row is not a request
	Change string        // the change of an object; such a row is not shown

	Changed *memoryserver.Change // nil: the row is not a change
}

// Add adds a row with the present time.
func (t *Trace) Add(r Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.at = t.now()
	t.rows = append(t.rows, r)
}

// Snapshot returns a copy. The run may go on while the copy is read.
func (t *Trace) Snapshot() *Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := &Trace{begun: t.begun, rows: slices.Clone(t.rows), phases: slices.Clone(t.phases)}
	for i, row := range now.rows {
		if row.Call != nil {
			now.rows[i].Call = new(*row.Call)
		}
	}
	return now
}

// Length returns how many rows there are.
func (t *Trace) Length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows)
}

// Cut removes all rows but the first ones.
func (t *Trace) Cut(length int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = t.rows[:length]
}

// AddBefore adds a row before the last one, which is the request that is being sent.
func (t *Trace) AddBefore(r Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.at = t.now()
	t.rows = slices.Insert(t.rows, len(t.rows)-1, r)
}

// now returns the virtual time since the first row. The caller holds the lock.
func (t *Trace) now() time.Duration {
	if t.begun.IsZero() {
		t.begun = time.Now()
	}
	return time.Since(t.begun)
}

// BeginPhase begins a new part of the trace, which can be printed without the parts before it.
func (t *Trace) BeginPhase() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases = append(t.phases, len(t.rows))
}

// Beginnings of rows in the table.
const (
	PassPrefix = "pass over "
	UserPrefix = "user: "
)

// These are the numbers of rows of a long table that are shown at its beginning and at its end.
const (
	firstRows = 60
	lastRows  = 20
)

// These are the widths of cells, in characters. A longer description makes its cell wider. A longer answer is cut off.
const (
	maxWhatWidth   = 64
	maxAnswerWidth = 160
)

// Faults returns how many faults were injected.
func (t *Trace) Faults() (n int) {
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
func (t *Trace) String() string { return t.from(0, false) }

// SinceFault returns the table from the beginning of the action during which the first fault was injected. It shows only the first line of
// each earlier action, and leaves out the middle of a long table.
func (t *Trace) SinceFault() string {
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

// LastPassWith returns the table of the last pass that sent the request.
func (t *Trace) LastPassWith(request string) string {
	for i, row := range slices.Backward(t.rows) {
		if call := row.Call; call != nil && call.String() == request {
			for begin := i; begin >= 0; begin-- {
				if strings.HasPrefix(t.rows[begin].What, PassPrefix) {
					only := &Trace{rows: t.rows[begin:t.endOfPass(begin)]}
					return only.String()
				}
			}
		}
	}
	return ""
}

// endOfPass returns the index after the last row of the pass that begins at the index.
func (t *Trace) endOfPass(begin int) int {
	end := begin + 1
	for end < len(t.rows) && t.rows[end].Pass == t.rows[begin].Pass {
		end++
	}
	return end
}

// from returns the table from the row with the index begin on. It shows only the user's actions before it. If short is true, it leaves out
// the middle of a long table.
func (t *Trace) from(begin int, short bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines [][3]string
	repeated := map[int]int{} // how often each line is repeated directly after itself
	widest := 0
	for i := range t.rows {
		line, shown := t.rows[i].cells()
		before := i < begin && !strings.HasPrefix(t.rows[i].What, UserPrefix)
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
			line[2] += fmt.Sprintf(" (%s)", text.Plural(n+1, "time"))
		}
		text := fmt.Sprintf("%-4s  %-*s  %s", line[0], widest, line[1], line[2])
		b.WriteString(strings.TrimRight(text, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// isSilent reports whether a row begins a pass that has no other row to show.
func (t *Trace) isSilent(i int) bool {
	if !strings.HasPrefix(t.rows[i].What, PassPrefix) {
		return false
	}
	for _, r := range t.rows[i+1:] {
		if strings.HasPrefix(r.What, PassPrefix) {
			break
		}
		if _, shown := r.cells(); shown && r.Pass == t.rows[i].Pass {
			return false
		}
	}
	return true
}

func (r *Row) isFault() bool { return r.Fault != "" || r.Call != nil && r.Call.Fault != "" }

// cells returns the row's cells: the pass, what happened, and the answer. A read of the cache is shown only if the cache was behind and the
// read was part of a pass. Reads by event handlers are not shown: the cache is often behind then, since other events follow.
func (r *Row) cells() (cells [3]string, shown bool) {
	if r.Change != "" {
		return cells, false
	}
	if r.Pass > 0 {
		cells[0] = fmt.Sprint(r.Pass)
	}
	cells[1], cells[2] = r.What, r.Answer
	fault := r.Fault
	if r.Call != nil {
		if r.Call.Cached && (r.Call.Behind == 0 || r.Call.Pass == 0) {
			return cells, false
		}
		cells[1], cells[2] = "  "+r.Call.String(), r.Call.Answer()
		if r.Call.DryRun {
			cells[1] += " (dry run)"
		}
		fault = kinds.Fault(r.Call.Fault)
	}
	cells[2] = text.Shorten(cells[2], maxAnswerWidth)
	if fault != "" {
		cells[2] += "   ← " + kinds.RuleOf(fault).Words
	}
	return cells, true
}

// ChangesBefore returns the rows of the changes between the given pass and the previous one over the same object.
func (t *Trace) ChangesBefore(pass int) []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	var over string
	var changes []Row
	for _, row := range t.rows {
		if row.Pass == pass && strings.HasPrefix(row.What, PassPrefix) {
			over = row.What
		}
	}
	for _, row := range t.rows {
		switch {
		case row.Pass == pass:
			return changes
		case row.What == over:
			changes = nil
		case row.Change != "":
			changes = append(changes, row)
		}
	}
	return changes
}
