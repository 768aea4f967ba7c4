// Package bubble runs functions in bubbles of testing/synctest, and describes the goroutines in them. [Run] reports the goroutines that are
// left, and [Hang] the goroutines that keep the virtual clock from moving. connection.go finds real connections.
package bubble

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Ending is how a bubble has ended.
type Ending struct {
	Left  string // if goroutines are left that wait for ever: the bubble's name, else ""
	Stuck bool   // the function itself never returns, since everything in the bubble waits
	Hung  error  // set if a goroutine waits for the network: nothing can end the bubble, so it is left behind
}

// Err returns an error about the goroutines that are left in the bubble. It returns nil if there are none.
func (e Ending) Err() error {
	switch {
	case e.Hung != nil:
		return e.Hung
	case e.Stuck:
		return stuckError(e.Left)
	case e.Left != "":
		return LeftError(e.Goroutines())
	}
	return nil
}

// Run calls f in a bubble of testing/synctest.
func Run(t *testing.T, f func(t *testing.T)) Ending {
	warmUp()
	b := &begun{ended: make(chan struct{})}
	go b.run(t, f)
	if hung := hangs(b.name, b.ended); hung != nil {
		return Ending{Hung: hung}
	}
	switch {
	case b.panicked != nil:
		panic(b.panicked)
	case !b.returned: // the test has ended its goroutine in the bubble, as by t.FailNow
		runtime.Goexit()
	}
	return b.ending
}

// begun is a bubble that runs a function.
type begun struct {
	named    atomic.Pointer[string]
	ended    chan struct{} // closed when the fields below are set
	ending   Ending
	panicked any
	returned bool
}

// name returns the bubble's name, "" if it has none yet.
func (b *begun) name() string {
	if name := b.named.Load(); name != nil {
		return *name
	}
	return ""
}

func (b *begun) run(t *testing.T, f func(t *testing.T)) {
	defer close(b.ended)
	defer func() {
		reports.Delete(b.name())
		r := recover()
		switch reason := fmt.Sprint(r); {
		case r == nil:
		case strings.Contains(reason, "deadlock"):
			b.ending = Ending{Left: b.name(), Stuck: strings.Contains(reason, "all goroutines in bubble are blocked")}
			b.returned = true
		default:
			b.panicked = r
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		b.named.Store(new(Name()))
		f(t)
	})
	b.returned = true
}

// Name returns the text that marks the goroutines of the caller's bubble in stack traces.
func Name() string {
	var header [100]byte
	text := string(header[:runtime.Stack(header[:], false)])
	_, after, _ := strings.Cut(text, "synctest bubble ")
	number, _, _ := strings.Cut(after, "]")
	return "synctest bubble " + number + "]"
}

// LeftError returns the error that goroutines are left at the end of a run.
func LeftError(all []Goroutines) error {
	return fmt.Errorf("a goroutine is left when the process has ended: %s", describe(all))
}

// stuckError returns the error that everything in the bubble waits. bubble is its name.
func stuckError(bubble string) error {
	return fmt.Errorf("the run does not go on, since everything in it waits: %s", describe(goroutinesOf(bubble)))
}

// Goroutines are goroutines that the same line of code has started, and that wait for the same thing.
type Goroutines struct {
	Where string // which function started them, at which line, and what they wait for
	Count int
}

// Goroutines returns the goroutines that are left in the bubble.
func (e Ending) Goroutines() []Goroutines {
	if e.Left == "" {
		return nil
	}
	return goroutinesOf(e.Left)
}

// goroutinesOf returns the bubble's goroutines, sorted.
func goroutinesOf(bubble string) (all []Goroutines) {
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, bubble) {
			continue
		}
		_, waits, _ := strings.Cut(header, "[")
		waits, _, _ = strings.Cut(waits, " (durable)")
		where := fmt.Sprintf("%s, and it waits: %s", startedBy(frames), waits)
		if i := slices.IndexFunc(all, func(g Goroutines) bool { return g.Where == where }); i >= 0 {
			all[i].Count++
			continue
		}
		all = append(all, Goroutines{where, 1})
	}
	slices.SortFunc(all, func(a, b Goroutines) int { return strings.Compare(a.Where, b.Where) })
	return all
}

// stacks returns the stacks of all goroutines of the program, including goroutines that earlier runs have left.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return string(text[:n])
		}
	}
}

func describe(all []Goroutines) string {
	var texts []string
	for _, g := range all {
		if g.Count > 1 {
			g.Where = fmt.Sprintf("%s (%d of them)", g.Where, g.Count)
		}
		texts = append(texts, g.Where)
	}
	return strings.Join(texts, "; ")
}
