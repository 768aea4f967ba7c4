package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/failure"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/request"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// explain explains why the check found a change.
func (c *restCheck) explain() error {
	var wrote []string
	for _, request := range c.Log.All() {
		if request.Pass > c.pass && request.Changed {
			wrote = append(wrote, request.String())
		}
	}
	if len(wrote) == 0 {
		return fmt.Errorf("the operator does not rest: while one more pass ran, something outside of any pass changed %s", c.changed())
	}
	if request := c.swallowed(wrote); request != nil {
		return fmt.Errorf("a refused write is not sent again: pass %d returned no error after %s (%w), and when the operator was quiet one more pass still had to send it\n"+
			"Return the error, so that the pass is retried", request.Pass, request.String(), request.Err)
	}
	missed, changed := c.missedChanges(), c.lastChangeOf(wrote)
	if !missed.none() && !c.writesAgain(wrote) {
		return missed.explain(wrote)
	}
	return fmt.Errorf("the operator does not rest: if nothing has changed a pass must write nothing, and one more pass still had to %s%s",
		strings.Join(wrote, ", "), changed)
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
	for _, change := range c.Server.Changes(c.before.Revision) {
		names = append(names, change.GVK.Kind+" "+state.NameOf(change.Key))
	}
	if len(names) == 0 {
		return "what is outside of the cluster"
	}
	return strings.Join(slices.Compact(names), ", ")
}

// notQuietError explains why the operator does not become quiet.
func (r *Run) notQuietError() error {
	counts := map[string]int{}
	most := ""
	for _, request := range r.Log.All() {
		if !request.Changed {
			continue
		}
		name := request.String()
		if counts[name]++; most == "" || counts[name] > counts[most] {
			most = name
		}
	}
	if most == "" {
		return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes, and none of them changes anything", maxPasses)}
	}
	return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("it does not become quiet in %d passes: %s, %d times%s", maxPasses, most, counts[most], r.lastChangeOf([]string{most}))}
}

// lastChangeOf returns the fields that the last request with one of the names changed, as the end of an error message. It
// returns "" if there are none.
func (r *Run) lastChangeOf(names []string) string {
	request := r.Log.LastChange(names)
	if request == nil {
		return ""
	}
	for _, change := range slices.Backward(r.Server.Changes(0)) {
		if change.GVK != request.Kind || change.Key != request.Object || change.Old == nil || change.New == nil {
			continue
		}
		if lines := state.ChangedFields(change.Old, change.New); len(lines) > 0 {
			return ":\n  " + strings.Join(lines, "\n  ")
		}
		return ""
	}
	return ""
}
