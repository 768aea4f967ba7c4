package operator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/internal/simulation/request"
)

// failing has the objects over which passes fail in a run without faults, and why. It remembers those whose deletion alone has ended
// that. The run's lock guards it.
type failing struct {
	passes map[fakemanager.Target]*passCount // since the last action
	now    map[fakemanager.Target]failingTarget
	ended  []string // a note for each object whose deletion has ended it
}

// passCount counts the passes over an object.
type passCount struct{ failed, all int }

// failingTarget is an object over which passes fail.
type failingTarget struct {
	object request.ObjectID // the object of the passes; the zero value: it is not known
	note   string
}

func newFailing() failing {
	return failing{passes: map[fakemanager.Target]*passCount{}, now: map[fakemanager.Target]failingTarget{}}
}

// count counts a pass that has ended.
func (f *failing) count(target fakemanager.Target, failed bool) {
	n := f.passes[target]
	if n == nil {
		n = &passCount{}
		f.passes[target] = n
	}
	if n.all++; failed {
		n.failed++
	}
}

// FailingPasses notes over which objects passes fail in a run without faults.
type FailingPasses struct{ *Operator }

// BeginAction notes that the next action begins.
func (o FailingPasses) BeginAction() {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	clear(o.Passes.failing.passes)
}

// Note notes over which objects passes fail when the operator is quiet after an action. An object over which they no longer fail is
// forgotten if it still exists, since then something has repaired it.
func (o FailingPasses) Note(action string) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	f := &o.Passes.failing
	for _, target := range slices.SortedFunc(maps.Keys(o.Passes.Outcome), fakemanager.Target.Compare) {
		was, failed := f.now[target]
		outcome := o.Passes.Outcome[target]
		switch problem := outcome.problem(o.Log); {
		case problem == "" && failed:
			delete(f.now, target)
			if was.object.Kind.Kind != "" && o.History.Present[was.object] == nil {
				f.ended = append(f.ended, was.note)
			}
		case problem != "" && !failed:
			f.now[target] = failingTarget{object: o.Log.ReadFirst(outcome.Pass, target.Request.NamespacedName), note: o.describe(target, action, problem)}
		}
	}
}

// describe describes passes that fail.
func (o FailingPasses) describe(target fakemanager.Target, action, problem string) string {
	outcome := o.Passes.Outcome[target]
	counted := ""
	if n := o.Passes.failing.passes[target]; n != nil && n.failed > 0 {
		counted = fmt.Sprintf("%d of %d ", n.failed, n.all)
	}
	return fmt.Sprintf("Without any fault, %spasses over %s after %q end %s\n%s", counted, DescribeTarget(target), action, problem, hintOf(outcome.cause(o.Log)))
}

// Notes returns a note for each object over which passes failed until it was deleted. If the run has failed, it also returns one
// for each object over which passes fail now, since that may be the reason.
func (o FailingPasses) Notes(action string) []string {
	if failure := o.Failure(); failure != nil {
		o.Note(action)
	}
	failure := o.Failure()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	var notes []string
	for _, note := range o.Passes.failing.ended {
		notes = append(notes, note+"\nOnly the deletion of the object has ended that")
	}
	if failure == nil {
		return notes
	}
	now := o.Passes.failing.now
	for _, target := range slices.SortedFunc(maps.Keys(now), fakemanager.Target.Compare) {
		if !strings.Contains(failure.Error(), o.Passes.Outcome[target].problem(o.Log)) { // it is not the failure itself
			notes = append(notes, now[target].note)
		}
	}
	return notes
}

// cause returns the error with which a pass ended, or else the first error of its requests. It may be nil.
func (o Outcome) cause(log *request.Log) error {
	if o.Err != nil {
		return o.Err
	}
	for _, r := range log.All() {
		if r.Pass == o.Pass && r.IsRefused() {
			return r.Err
		}
	}
	return nil
}

// hintOf returns what the reason of an error may be that a pass meets without any fault.
func hintOf(err error) string {
	switch text := fmt.Sprint(err); {
	case err == nil:
		return "If it waits for something, let an action or a simulated controller of the scenario do that"
	case meta.IsNoMatchError(err) || strings.Contains(text, "no matches for kind"):
		return "That kind is not served: add its definition to the scenario's CRDs"
	case runtime.IsNotRegisteredError(err) || strings.Contains(text, "no kind is registered"):
		return "Add the kind's types to the scenario's Scheme, as main does (AddToScheme)"
	case strings.Contains(text, "Index with name"):
		return "Register the index in Start, as main does (mgr.GetFieldIndexer().IndexField)"
	case StatusHint(err) != "":
		return StatusHint(err)
	case apierrors.IsNotFound(err):
		return "If something else creates that object in a cluster, create it in the scenario: in Objects, in an action or in a simulated controller"
	}
	return "If a webhook fills in defaults in a cluster, give them to the scenario's objects: no webhook is called here"
}

// StatusHint says what to do if the API server refuses a field of the status, "" if the error is another one.
func StatusHint(err error) string {
	refused, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || refused.Status().Details == nil {
		return ""
	}
	for _, cause := range refused.Status().Details.Causes {
		if strings.HasPrefix(cause.Field, "status.") {
			return "If the kind has no status subresource, its Go type sends an empty status with each create and update, which the definition refuses: " +
				"send an unstructured object without a status, or make the status a pointer or omitzero"
		}
	}
	return ""
}
