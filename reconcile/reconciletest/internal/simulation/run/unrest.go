package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// explain returns an error that explains why one more pass changed something. writesAgain runs more passes, and reports whether they send
// one of the requests again.
func (p *probes) explain(writesAgain func(wrote []string) bool) error {
	var wrote []string
	for _, request := range p.world.Log.All() {
		if request.Pass > p.pass && request.Changed && !p.isHeartbeat(&request) {
			wrote = append(wrote, request.String())
		}
	}
	if len(wrote) == 0 {
		return fmt.Errorf("the operator does not rest: while one more pass ran, something outside of any pass changed %s%s", p.changed(), fieldsOf(p.firstChange())+heartbeatRemedy(p.firstChange()))
	}
	if request := p.swallowed(wrote); request != nil {
		return fmt.Errorf("a refused write is not sent again: pass %d returned no error after %s (%w), and when the operator was quiet one more pass still had to send it\n"+
			"Return the error, so that the pass is retried", request.Pass, request.String(), request.Err)
	}
	missed, last := p.missedChanges(), lastChange(p.world, wrote)
	delay := p.delayBefore(missed.over)
	if failed := p.failureBefore(missed.over); failed != nil {
		return fmt.Errorf("the last pass over %s failed, and its retry was still due when the operator counted as quiet: one more pass had to %s. "+
			"If the scenario sets a Horizon, let it be longer than the backoff of the retries, or wait for the retry by Wait. The pass failed: %w", operator.DescribeTarget(missed.over), strings.Join(wrote, ", "), failed)
	}
	switch {
	case delay == 0 && missed.none(), writesAgain(wrote):
	case delay > 0:
		return missed.explainDelay(delay, wrote)
	default:
		return missed.explain(wrote)
	}
	return fmt.Errorf("the operator does not rest: if nothing has changed a pass must write nothing, and one more pass still had to %s%s",
		strings.Join(wrote, ", "), fieldsOf(last)+heartbeatRemedy(last))
}

// delayBefore returns the RequeueAfter of the last pass over an object before the check. If that pass asked for no delay, or failed, it
// returns 0.
func (p *probes) delayBefore(over fakemanager.Target) time.Duration {
	p.world.Mu.Lock()
	defer p.world.Mu.Unlock()
	if last := p.operator.Passes.Before[over]; last.Err == nil {
		return last.Result.RequeueAfter
	}
	return 0
}

// failureBefore returns the error of the last pass over an object before the check, nil if it succeeded.
func (p *probes) failureBefore(over fakemanager.Target) error {
	p.world.Mu.Lock()
	defer p.world.Mu.Unlock()
	return p.operator.Passes.Before[over].Err
}

// isHeartbeat reports whether the request's object has changed since the check began, and only in fields that the scenario names as
// heartbeats.
func (p *probes) isHeartbeat(r *request.Request) bool {
	beats := false
	changes := p.world.Server.Changes(p.before.Revision)
	for i := range changes {
		if change := &changes[i]; change.GVK == r.Kind && change.Key == r.Object {
			if !p.world.IsHeartbeat(change) {
				return false
			}
			beats = true
		}
	}
	return beats
}

// swallowed finds the last request with one of the names that was sent before the check. It returns the request if the API server refused
// it, and if the pass that sent it was the last one over its object and returned neither an error nor a delay. Otherwise it returns nil.
func (p *probes) swallowed(wrote []string) *request.Request {
	for _, request := range slices.Backward(p.world.Log.All()) {
		if request.Pass == 0 || request.Pass > p.pass || !slices.Contains(wrote, request.String()) {
			continue
		}
		p.world.Mu.Lock()
		defer p.world.Mu.Unlock()
		for _, o := range p.operator.Passes.Before {
			if o.Pass == request.Pass && o.Err == nil && o.Result.RequeueAfter == 0 && request.IsRefused() {
				return &request
			}
		}
		return nil
	}
	return nil
}

// changed returns the names of the objects that changed during the check. If no object changed, the text says that something outside of the
// cluster did.
func (p *probes) changed() string {
	var names []string
	changes := p.world.Server.Changes(p.before.Revision)
	for i := range changes {
		change := &changes[i]
		if p.world.IsHeartbeat(change) {
			continue
		}
		names = append(names, change.GVK.Kind+" "+state.NameOf(change.Key))
	}
	if len(names) == 0 {
		return "what is outside of the cluster"
	}
	return strings.Join(slices.Compact(names), ", ")
}

// firstChange returns the first change during the check that is not a heartbeat, nil if there is none.
func (p *probes) firstChange() *memoryserver.Change {
	changes := p.world.Server.Changes(p.before.Revision)
	for i := range changes {
		if !p.world.IsHeartbeat(&changes[i]) {
			return &changes[i]
		}
	}
	return nil
}
