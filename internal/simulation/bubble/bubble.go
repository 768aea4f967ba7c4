// Package bubble runs functions in bubbles of testing/synctest, and describes the goroutines in them: [Run] reports those that
// are left, and [Blocked] those that keep the virtual clock from moving.
package bubble

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// Run calls f in a bubble of testing/synctest. If goroutines that wait for ever are left in the bubble, it returns
// the bubble's name, else "".
func Run(t *testing.T, f func(t *testing.T)) (left string) {
	var name string
	defer func() {
		if r := recover(); r != nil {
			if !strings.Contains(fmt.Sprint(r), "deadlock") {
				panic(r)
			}
			left = name
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		name = bubbleName()
		f(t)
	})
	return ""
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
