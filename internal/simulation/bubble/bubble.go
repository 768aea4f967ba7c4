// Package bubble runs functions in bubbles of testing/synctest, and describes the goroutines in them: [Run] reports those that
// are left, and [Blocked] those that keep the virtual clock from moving. connection.go finds real connections.
package bubble

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Run calls f in a bubble of testing/synctest. If goroutines that wait for ever are left in the bubble, it returns the bubble's
// name, else "". If a goroutine waits for the network, Run returns an error, and leaves the bubble behind: nothing can end that.
func Run(t *testing.T, f func(t *testing.T)) (left string, hung error) {
	warmUp()
	b := &begun{ended: make(chan struct{})}
	go b.run(t, f)
	if hung := hangs(b.name, b.ended); hung != nil {
		return "", hung
	}
	switch {
	case b.panicked != nil:
		panic(b.panicked)
	case !b.returned: // the test has failed in the bubble
		runtime.Goexit()
	}
	return b.left, nil
}

// begun is a bubble whose function was called.
type begun struct {
	named    atomic.Pointer[string]
	ended    chan struct{} // closed when the fields below are set
	left     string
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
		switch r := recover(); {
		case r == nil:
		case strings.Contains(fmt.Sprint(r), "deadlock"):
			b.left, b.returned = b.name(), true
		default:
			b.panicked = r
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		b.named.Store(new(bubbleName()))
		f(t)
	})
	b.returned = true
}

// bubbleName returns the text that marks the bubble's goroutines in stack traces.
func bubbleName() string {
	var header [100]byte
	text := string(header[:runtime.Stack(header[:], false)])
	_, after, _ := strings.Cut(text, "synctest bubble ")
	number, _, _ := strings.Cut(after, "]")
	return "synctest bubble " + number + "]"
}

// LeftError returns the error about the goroutines that are left in the bubble.
func LeftError(bubble string) error {
	return fmt.Errorf("a goroutine is left when the process has ended: %s", goroutinesOf(bubble))
}

// goroutinesOf describes the bubble's goroutines: which function started each, and what it waits for.
func goroutinesOf(bubble string) string {
	stacks := make([]byte, 1<<20)
	var all []string
	count := map[string]int{}
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, bubble) {
			continue
		}
		_, waits, _ := strings.Cut(header, "[")
		waits, _, _ = strings.Cut(waits, " (durable)")
		_, by, _ := strings.Cut(frames, "created by ")
		by, at, _ := strings.Cut(by, "\n\t")
		by, _, _ = strings.Cut(by, " in goroutine")
		at, _, _ = strings.Cut(at, " +")
		one := fmt.Sprintf("%s started it at %s, and it waits: %s", by, at[strings.LastIndex(at, "/")+1:], waits)
		if count[one]++; count[one] == 1 {
			all = append(all, one)
		}
	}
	for i, one := range all {
		if n := count[one]; n > 1 {
			all[i] = fmt.Sprintf("%s (%d of them)", one, n)
		}
	}
	return strings.Join(all, "; ")
}

// What blocked shows.
const (
	maxBlocked = 2  // goroutines
	maxFrames  = 24 // lines of the stack of each: two for each frame
)

// Blocked returns the stacks of goroutines in bubbles that keep the virtual clock from moving: they compute, or wait for something
// outside of the bubble, such as the network or a mutex.
func Blocked() string {
	stacks := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, _, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, "synctest bubble") || strings.Contains(header, "(durable)") || strings.Contains(header, "[synctest.") {
			continue
		}
		lines := strings.Split(strings.TrimSpace(stack), "\n")
		found = append(found, strings.Join(lines[:min(len(lines), maxFrames)], "\n"))
	}
	if len(found) == 0 {
		return "no goroutine of it computes or waits for something outside of the run"
	}
	return "it hangs here:\n" + strings.Join(found[:min(len(found), maxBlocked)], "\n\n")
}
