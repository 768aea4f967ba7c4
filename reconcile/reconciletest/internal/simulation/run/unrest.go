package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// explain explains why the check found a change.
func (c *restCheck) explain() error {
	var wrote []string
	for _, request := range c.Log.All() {
		if request.Pass > c.pass && request.Changed && !c.isHeartbeat(&request) {
			wrote = append(wrote, request.String())
		}
	}
	if len(wrote) == 0 {
		return fmt.Errorf("the operator does not rest: while one more pass ran, something outside of any pass changed %s%s", c.changed(), fieldsOf(c.firstChange())+c.heartbeatRemedy(c.firstChange()))
	}
	if request := c.swallowed(wrote); request != nil {
		return fmt.Errorf("a refused write is not sent again: pass %d returned no error after %s (%w), and when the operator was quiet one more pass still had to send it\n"+
			"Return the error, so that the pass is retried", request.Pass, request.String(), request.Err)
	}
	missed, last := c.missedChanges(), c.lastChangeOf(wrote)
	delay := c.delayBefore(missed.over)
	if failed := c.failureBefore(missed.over); failed != nil {
		return fmt.Errorf("the last pass over %s failed, and its retry was still due when the operator counted as quiet: one more pass had to %s. "+
			"If the scenario sets a Horizon, let it be longer than the backoff of the retries, or wait for the retry by Wait. The pass failed: %w", operator.DescribeTarget(missed.over), strings.Join(wrote, ", "), failed)
	}
	switch {
	case delay == 0 && missed.none(), c.writesAgain(wrote):
	case delay > 0:
		return missed.explainDelay(delay, wrote)
	default:
		return missed.explain(wrote)
	}
	return fmt.Errorf("the operator does not rest: if nothing has changed a pass must write nothing, and one more pass still had to %s%s",
		strings.Join(wrote, ", "), fieldsOf(last)+c.heartbeatRemedy(last))
}

// delayBefore returns the delay for which the last pass over an object before the check has asked. It returns 0 if that pass asked for none.
func (c *restCheck) delayBefore(over fakemanager.Target) time.Duration {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if last := c.Passes.Before[over]; last.Err == nil {
		return last.Result.RequeueAfter
	}
	return 0
}

// failureBefore returns the error of the last pass over an object before the check, nil if it succeeded.
func (c *restCheck) failureBefore(over fakemanager.Target) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.Passes.Before[over].Err
}

// isHeartbeat reports whether the request during the check changed nothing but heartbeats.
func (c *restCheck) isHeartbeat(r *request.Request) bool {
	beats := false
	changes := c.Server.Changes(c.before.Revision)
	for i := range changes {
		if change := &changes[i]; change.GVK == r.Kind && change.Key == r.Object {
			if !c.IsHeartbeat(change) {
				return false
			}
			beats = true
		}
	}
	return beats
}

// swallowed returns the last of the requests before the check, if it was refused, and its pass, the last one over its object, ended
// without an error or a delay. It returns nil otherwise.
func (c *restCheck) swallowed(wrote []string) *request.Request {
	for _, request := range slices.Backward(c.Log.All()) {
		if request.Pass == 0 || request.Pass > c.pass || !slices.Contains(wrote, request.String()) {
			continue
		}
		c.Mu.Lock()
		defer c.Mu.Unlock()
		for _, o := range c.Passes.Before {
			if o.Pass == request.Pass && o.Err == nil && o.Result.RequeueAfter == 0 && request.IsRefused() {
				return &request
			}
		}
		return nil
	}
	return nil
}

// writesAgain runs more passes after the check. It reports whether they send one of the requests once more, and change
// something by it. Then no event is missing: the operator would go on like that. The run has failed already, and these
// passes leave no trace in it.
func (c *restCheck) writesAgain(wrote []string) bool {
	c.Mu.Lock()
	failures := len(c.Failures)
	c.Mu.Unlock()
	rows, before := c.Trace.Length(), len(c.Log.All())
	c.work(0)
	time.Sleep(restTime)
	c.SetCause("nothing: the operator is quiet")
	c.Leader.Mgr.EnqueueKnown()
	for range maxPasses {
		if c.Failure() != nil || !c.nextPass() {
			break
		}
	}
	c.Mu.Lock()
	c.Failures = c.Failures[:failures]
	c.Mu.Unlock()
	c.Trace.Cut(rows)
	return slices.ContainsFunc(c.Log.All()[before:], func(request request.Request) bool {
		return request.Changed && slices.Contains(wrote, request.String())
	})
}

// changed names the objects that changed on the server during the check; if there are none, what is outside of the cluster.
func (c *restCheck) changed() string {
	var names []string
	changes := c.Server.Changes(c.before.Revision)
	for i := range changes {
		change := &changes[i]
		if c.IsHeartbeat(change) {
			continue
		}
		names = append(names, change.GVK.Kind+" "+state.NameOf(change.Key))
	}
	if len(names) == 0 {
		return "what is outside of the cluster"
	}
	return strings.Join(slices.Compact(names), ", ")
}

// minPeriod is the shortest time between changes, on average, that is taken for a schedule and not for a heartbeat.
const minPeriod = 30 * time.Second

// notQuietError explains why the operator has not become quiet since a time, in the passes after the given one.
func (r *Run) notQuietError(since time.Time, pass int) error {
	counts, changes := map[string]int{}, 0
	most := ""
	for _, request := range r.Log.All() {
		if !request.Changed || request.Pass != 0 && request.Pass <= pass {
			continue
		}
		changes++
		name := request.String()
		if counts[name]++; most == "" || counts[name] > counts[most] {
			most = name
		}
	}
	if changes < maxPasses/10 { // what they write is not the reason
		return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes, and %s: %s", maxPasses, fewChanges(changes), r.endOfLastPass())}
	}
	if period := time.Since(since) / time.Duration(changes); period >= minPeriod {
		return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes: %s, %d times in %s of virtual time. It does something at regular times, such as by a schedule, "+
			"and the scenario's Horizon of %s is longer than the time between them\nSet a Horizon that is shorter than the period, and let a run become due by Wait: see \"Schedules and polls\" in docs/testing.md",
			maxPasses, most, counts[most], time.Since(since).Round(time.Second), r.scenario.horizon())}
	}
	last := r.lastChangeOf([]string{most})
	remedy := r.heartbeatRemedy(last)
	if took := time.Since(since); took < maxPasses*time.Second/2 {
		remedy = fmt.Sprintf("\nAll of them happen within %s: a pass runs again at once after its own write. Write only what has changed, and let a predicate leave out "+
			"updates of the status (predicate.GenerationChangedPredicate). If the value is another one in each pass, such as a random text, make it once and keep it", took.Round(time.Millisecond))
	}
	return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes: %s, %d times%s%s", maxPasses, most, counts[most], fieldsOf(last), remedy)}
}

// fewChanges says how many requests of the passes change something.
func fewChanges(n int) string {
	if n == 0 {
		return "none of them changes anything"
	}
	return fmt.Sprintf("no more than %d of their requests change anything", n)
}

// endOfLastPass says why another pass follows.
func (r *Run) endOfLastPass() string {
	var last operator.Outcome
	var over fakemanager.Target
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for target, o := range r.Passes.Outcome {
		if o.Pass > last.Pass {
			last, over = o, target
		}
	}
	if last.Err != nil {
		return fmt.Sprintf("each pass over %s ends with an error, such as the last one: %v", operator.DescribeTarget(over), last.Err)
	}
	return "each asks for another one. Return a delay only while something is left to wait for"
}

// lastChangeOf returns the last change by a request with one of the names that changed fields. It returns nil if there is none.
func (r *Run) lastChangeOf(names []string) *memoryserver.Change {
	request := r.Log.LastChange(names)
	if request == nil {
		return nil
	}
	changes := r.Server.Changes(0)
	for i := range slices.Backward(changes) {
		if c := &changes[i]; c.GVK == request.Kind && c.Key == request.Object && c.Old != nil && c.New != nil && !r.IsHeartbeat(c) {
			return c
		}
	}
	return nil
}

// firstChange returns the first change during the check that is not a heartbeat, nil if there is none.
func (c *restCheck) firstChange() *memoryserver.Change {
	changes := c.Server.Changes(c.before.Revision)
	for i := range changes {
		if !c.IsHeartbeat(&changes[i]) {
			return &changes[i]
		}
	}
	return nil
}

// fieldsOf returns the fields that a change changed, as the end of an error message. It returns "" if there are none.
func fieldsOf(c *memoryserver.Change) string {
	if c == nil || c.Old == nil || c.New == nil {
		return ""
	}
	lines := state.ChangedFields(c.Old, c.New)
	if len(lines) == 0 {
		return ""
	}
	return ":\n  " + strings.Join(lines, "\n  ")
}

// heartbeatRemedy returns how to leave out the fields that a change changed, as the end of an error message, if they may be a
// heartbeat: few fields of a status or annotations. It returns "" otherwise.
func (r *Run) heartbeatRemedy(c *memoryserver.Change) string {
	if c == nil || c.Old == nil || c.New == nil {
		return ""
	}
	paths := state.ChangedPaths(c.Old, c.New)
	for _, path := range paths {
		if !strings.HasPrefix(path, "status.") && !strings.HasPrefix(path, "metadata.annotations") && c.GVK.Kind != "Lease" {
			return ""
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return fmt.Sprintf("\nIf that is a heartbeat, name it in the scenario: Heartbeats: map[string][]string{%q: {\"%s\"}}", c.GVK.Kind, strings.Join(paths, `", "`))
}
