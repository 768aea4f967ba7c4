package simulation

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
)

// Progress prints how far an exploration is, one line at a time. The clock is the real one. A nil Progress prints nothing.
type Progress struct {
	Output io.Writer
	First  time.Duration // the time until the first line is printed
	Every  time.Duration // the time from one line to the next

	mu      sync.Mutex // guards what follows
	test    string
	began   time.Time
	planned int                         // the number of runs with faults that will be done, as far as is known
	done    int                         // the number of runs with faults that have ended
	first   time.Time                   // when the first run with faults began
	running map[*[]plan.Fault]time.Time // when each run began that has not ended
}

// slowRun is the time after which a line of progress names a run that has not ended, since it may hang.
const slowRun = 10 * time.Second

// start begins to print. The caller calls stop at the end.
func (p *Progress) start(test string) (stop func()) {
	if p == nil {
		return func() {}
	}
	p.test, p.began, p.running = test, time.Now(), map[*[]plan.Fault]time.Time{}
	ended := make(chan struct{})
	var printer sync.WaitGroup
	printer.Go(func() {
		for wait := p.First; ; wait = p.Every {
			select {
			case <-ended:
				return
			case now := <-time.After(wait):
				_, _ = io.WriteString(p.Output, p.line(now)+"\n") // an error of the output is ignored
			}
		}
	})
	return func() {
		close(ended)
		printer.Wait()
	}
}

// say prints notes at once.
func (p *Progress) say(notes []string) {
	if p == nil {
		return
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(p.Output, "reconciletest: %s: %s\n", p.test, note) // an error of the output is ignored
	}
}

// plan adds to the number of runs that will be done.
func (p *Progress) plan(runs int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		p.first = time.Now()
	}
	p.planned += runs
}

// begin notes that a run begins. The caller calls end when it has ended.
func (p *Progress) begin(faults []plan.Fault) (end func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[&faults] = time.Now()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done++
		delete(p.running, &faults)
	}
}

// line returns the text of a line of progress.
func (p *Progress) line(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.planned == 0 {
		return fmt.Sprintf("reconciletest: %s: the runs without faults, %s", p.test, seconds(now.Sub(p.began)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "reconciletest: %s: %s of %s runs, %s", p.test, thousands(p.done), thousands(p.planned), seconds(now.Sub(p.began)))
	if p.done > 0 {
		left := now.Sub(p.first) * time.Duration(p.planned-p.done) / time.Duration(p.done)
		fmt.Fprintf(&b, ", about %s left", seconds(left))
	}
	var oldest []plan.Fault
	since := now.Add(-slowRun)
	for faults, began := range p.running {
		if began.Before(since) {
			oldest, since = *faults, began
		}
	}
	if oldest != nil {
		fmt.Fprintf(&b, "; one takes %s so far: %s", seconds(now.Sub(since)), plan.FormatFaults(oldest))
	}
	return b.String()
}

// seconds returns a duration in whole seconds, and in minutes where that is easier to read: "12 s", "2 m 05 s".
func seconds(d time.Duration) string {
	n := int(d.Round(time.Second) / time.Second)
	if n < 120 {
		return fmt.Sprintf("%d s", n)
	}
	return fmt.Sprintf("%d m %02d s", n/60, n%60)
}

// thousands returns a number with commas: "4,310".
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
