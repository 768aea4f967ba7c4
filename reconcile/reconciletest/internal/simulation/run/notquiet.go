package run

import (
	"fmt"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// maxPasses is the largest number of passes between two actions. An operator that makes more does not become quiet.
const maxPasses = 300

// minPeriod separates a schedule from a heartbeat: if the average time between changes is at least this long, they count as a schedule.
const minPeriod = 30 * time.Second

// notQuietError returns an error that explains why the operator has not become quiet since the given time. It looks at the passes after the
// given pass. horizon is the scenario's horizon.
func notQuietError(w *world.World, o *operator.Operator, horizon time.Duration, since time.Time, pass int) error {
	counts, changes := map[string]int{}, 0
	most := ""
	for _, request := range w.Log.All() {
		if !request.Changed || request.Pass != 0 && request.Pass <= pass {
			continue
		}
		changes++
		name := request.String()
		if counts[name]++; most == "" || counts[name] > counts[most] {
			most = name
		}
	}
	if changes < maxPasses/10 { // few changes: the writes are not the reason
		return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes, and %s: %s", maxPasses, fewChanges(changes), endOfLastPass(w, o))}
	}
	if period := time.Since(since) / time.Duration(changes); period >= minPeriod {
		return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes: %s, %d times in %s of virtual time. It does something at regular times, such as by a schedule, "+
			"and the scenario's Horizon of %s is longer than the time between them\nSet a Horizon that is shorter than the period, and let a run become due by Wait: see \"Schedules and polls\" in docs/testing.md",
			maxPasses, most, counts[most], time.Since(since).Round(time.Second), horizon)}
	}
	last := lastChange(w, []string{most})
	remedy := heartbeatRemedy(last)
	if took := time.Since(since); took < maxPasses*time.Second/2 {
		remedy = fmt.Sprintf("\nAll of them happen within %s: a pass runs again at once after its own write. Write only what has changed, and let a predicate leave out "+
			"updates of the status (predicate.GenerationChangedPredicate). If the value is another one in each pass, such as a random text, make it once and keep it", took.Round(time.Millisecond))
	}
	return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes: %s, %d times%s%s", maxPasses, most, counts[most], fieldsOf(last), remedy)}
}

// fewChanges returns a text about how many requests of the passes change something.
func fewChanges(n int) string {
	if n == 0 {
		return "none of them changes anything"
	}
	return fmt.Sprintf("no more than %d of their requests change anything", n)
}

// endOfLastPass returns a text about why another pass follows the last one.
func endOfLastPass(w *world.World, o *operator.Operator) string {
	var last operator.Outcome
	var over fakemanager.Target
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for target, ended := range o.Passes.Outcome {
		if ended.Pass > last.Pass {
			last, over = ended, target
		}
	}
	if last.Err != nil {
		return fmt.Sprintf("each pass over %s ends with an error, such as the last one: %v", operator.DescribeTarget(over), last.Err)
	}
	return "each asks for another one. Return a delay only while something is left to wait for"
}
