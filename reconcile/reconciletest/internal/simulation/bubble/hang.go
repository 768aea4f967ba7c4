package bubble

import (
	"fmt"
	"runtime"
	"strings"
)

// These are the sizes of what [Hang] shows.
const (
	maxStacks  = 4 << 20 // bytes of the stacks of all goroutines of the program
	maxBlocked = 2       // the number of goroutines
	maxFrames  = 24      // lines of the stack of each goroutine: two for each frame
)

// Hang returns what keeps the virtual clock of a bubble from moving: goroutines that compute, or that wait for something outside of the
// bubble, such as a mutex or the network. remedy is a sentence about one of them. stacks has their stacks.
func Hang(bubble string) (remedy, stacks string) {
	all := make([]byte, maxStacks)
	var found []string
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		header, _, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, bubble) || strings.Contains(header, "(durable)") || strings.Contains(header, "[synctest.") {
			continue
		}
		_, state, _ := strings.Cut(header, "[")
		state, _, _ = strings.Cut(state, ",")
		if remedy == "" || strings.HasPrefix(state, "sync.") { // a goroutine that waits for a lock is preferred
			remedy = remedyOf(state)
		}
		lines := strings.Split(strings.TrimSpace(stack), "\n")
		found = append(found, strings.Join(lines[:min(len(lines), maxFrames)], "\n"))
	}
	if len(found) == 0 {
		return "no goroutine of it computes or waits for something outside of the run", ""
	}
	return remedy, strings.Join(found[:min(len(found), maxBlocked)], "\n\n")
}

// remedyOf returns what to do about a goroutine in this state, in which the virtual clock cannot move.
func remedyOf(state string) string {
	switch {
	case strings.HasPrefix(state, "chan ") || strings.HasPrefix(state, "select"):
		return "it waits for a channel or a timer that was made outside of the run, such as in a package variable, whose clock is the real one: make it in Start, or in the pass"
	case strings.HasPrefix(state, "sync.") || strings.HasPrefix(state, "semacquire"):
		return "it waits for a lock that is not released, such as a mutex that a pass has left locked: unlock it by defer, and keep it in what Start makes, not in a package variable"
	case state == "IO wait" || state == "syscall":
		return "it waits for the network or for a file: let a fake of the scenario answer (Scenario.External, Process.RoundTripper)"
	}
	return "it computes, or starts goroutines, without end: let it end when its context is cancelled, and wait by a timer or a channel"
}

// startedBy returns which function started a goroutine, and where.
func startedBy(frames string) string {
	_, by, _ := strings.Cut(frames, "created by ")
	by, at, _ := strings.Cut(by, "\n\t")
	by, _, _ = strings.Cut(by, " in goroutine")
	at, _, _ = strings.Cut(at, " +")
	return fmt.Sprintf("%s started it at %s", by, at[strings.LastIndex(at, "/")+1:])
}
