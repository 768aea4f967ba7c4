package operator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/readiness"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/verdict"
)

// verdicts says how the passes of a run without faults have ended. The run's lock guards it.
type verdicts struct {
	book     verdict.Book
	objects  map[fakemanager.Target]verdict.Object // the object of the last pass of another reconciler
	reported map[fakemanager.Target]verdict.Pass   // the last pass of package reconcile, whose steps are judged
	lines    []string                              // lines for the report, such as about failures after which a retry succeeded
	filtered string                                // an object that a filter has left out; "": there is none
	ran      bool                                  // a pass has run over an object that no filter has left out
	gone     map[fakemanager.Target]bool           // whether the last pass of package reconcile was over an object that does not exist
}

func newVerdicts() verdicts {
	return verdicts{objects: map[fakemanager.Target]verdict.Object{}, reported: map[fakemanager.Target]verdict.Pass{}, gone: map[fakemanager.Target]bool{}}
}

// Verdict judges whether the operator succeeds in a run without faults.
type Verdict struct{ of *Operator }

// VerdictOf returns the verdict of an operator.
func VerdictOf(o *Operator) Verdict { return Verdict{o} }

// stepsEnded notes how the steps in a pass of package reconcile have ended.
func (v Verdict) stepsEnded(target fakemanager.Target, end passcontext.PassEnd) {
	o := v.of
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if o.world.References != nil {
		return
	}
	if o.Passes.verdict.gone[target] = end.Gone; end.Gone {
		return
	}
	id := request.ObjectID{Kind: end.Kind, Name: target.Request.NamespacedName}
	pass := verdict.Pass{Object: verdict.Object{Controller: target.Controller, ID: id, UID: end.UID, Name: id.String()}, Cleanup: end.Cleanup}
	for _, step := range end.Steps {
		pass.Ends = append(pass.Ends, verdict.End{Step: step.Step, State: step.State, Reason: step.Reason, Message: step.Message})
	}
	if o.Passes.verdict.ran = o.Passes.verdict.ran || !end.FilteredOut; end.FilteredOut {
		o.Passes.verdict.filtered = id.String()
	}
	o.Passes.verdict.reported[target] = pass
	o.Passes.verdict.book.Add(pass)
}

// passEnded notes how a pass of a reconciler without steps has ended. The caller holds the lock.
func (v Verdict) passEnded(ended *pass, err error) {
	o, of := v.of, &v.of.Passes.verdict
	if _, ofBlocks := of.reported[ended.target]; ofBlocks || o.world.References != nil {
		return
	}
	object := verdict.Object{Controller: ended.target.Controller, ID: o.world.Log.ReadFirst(ended.number, ended.target.Request.NamespacedName), Name: DescribeTarget(ended.target)}
	if live := o.world.History.Present[object.ID]; live != nil {
		object.UID = live.GetUID()
	}
	of.objects[ended.target], of.ran = object, of.ran || !of.gone[ended.target]
	end := verdict.End{State: verdict.Succeeded}
	if err != nil && !apierrors.IsConflict(err) {
		end = verdict.End{State: verdict.Failed, Message: err.Error()}
	}
	of.book.Add(verdict.Pass{Object: object, Ends: []verdict.End{end}})
}

// BeginAction notes that the next action begins.
func (v Verdict) BeginAction() {
	v.of.world.Mu.Lock()
	defer v.of.world.Mu.Unlock()
	v.of.Passes.verdict.book.BeginAction()
}

// Rest is called when the operator is quiet after an action.
func (v Verdict) Rest(action string) {
	o := v.of
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	exists := map[types.UID]bool{}
	for _, obj := range o.world.History.Present {
		exists[obj.GetUID()] = true
	}
	of := &o.Passes.verdict
	for _, target := range slices.SortedFunc(maps.Keys(o.Passes.Outcome), fakemanager.Target.Compare) {
		if pass, corrected := v.correct(target); corrected {
			of.book.Replace(pass)
		}
	}
	for _, line := range of.book.Rest(action, func(uid types.UID) bool { return exists[uid] }) {
		if !slices.Contains(of.lines, line) {
			of.lines = append(of.lines, line)
		}
	}
}

// correct returns how the last pass for a target has ended. It adds two facts that are known only when the operator is quiet: whether a
// delay hides a refused request, and what the conditions of the object say. It returns false if there is nothing to add.
func (v Verdict) correct(target fakemanager.Target) (pass verdict.Pass, corrected bool) {
	o, outcome := v.of, v.of.Passes.Outcome[target]
	end := verdict.End{State: verdict.Succeeded}
	if problem := outcome.problem(o.world.Log); problem != "" {
		end = verdict.End{State: verdict.Failed, Message: problem, Hint: hintOf(outcome.cause(o.world.Log))}
	}
	if pass, ofBlocks := o.Passes.verdict.reported[target]; ofBlocks {
		stepsSucceeded := !slices.ContainsFunc(pass.Ends, func(e verdict.End) bool { return e.State != verdict.Succeeded && e.State != verdict.Skipped })
		if end.State == verdict.Failed && stepsSucceeded { // such as a status that is refused
			pass.Ends = append(slices.Clone(pass.Ends), end)
			return pass, true
		}
		return pass, false
	}
	pass = verdict.Pass{Object: o.Passes.verdict.objects[target], Ends: []verdict.End{end}}
	if status, known := v.statusOf(pass.Object.ID); known {
		pass.Ends = append(pass.Ends, status)
	}
	return pass, true
}

// statusOf returns what the status of an object of a custom kind says by the rules of kstatus. It returns false for built-in kinds: a Pod
// that has completed is not ready, although nothing is wrong with it.
func (v Verdict) statusOf(id request.ObjectID) (end verdict.End, known bool) {
	live := v.of.world.History.Present[id]
	if live == nil || !id.IsCustom() {
		return verdict.End{}, false
	}
	is, err := readiness.Compute(live, id.Kind)
	if err != nil {
		return verdict.End{}, false
	}
	end = verdict.End{Step: "status", IsStatus: true, State: verdict.Waiting, Reason: is.Reason, Message: is.Message}
	if is.Status == status.CurrentStatus {
		end.State = verdict.Succeeded
	}
	return end, true
}

// Succeeds reports whether a pass was the last one over its object, returned neither an error nor a delay, and the object's own status does
// not say that something is wrong. The caller holds the lock.
func (v Verdict) Succeeds(pass int) bool {
	passes := &v.of.Passes
	target := passes.Over(pass)
	ended := passes.Outcome[target]
	if ended.Pass != pass || ended.Err != nil || !ended.Result.IsZero() {
		return false
	}
	status, known := v.statusOf(passes.verdict.objects[target].ID)
	return !known || status.State == verdict.Succeeded
}

// Check judges the run at its end. It returns an error for each step or pass that did not succeed, and for each entry of asked that did not
// happen. asked is the scenario's Unready.
func (v Verdict) Check(asked []verdict.Unready) (errs []error) {
	o := v.of
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if err := v.checkPasses(); err != nil {
		return []error{err}
	}
	judgement := o.Passes.verdict.book.Judge(asked)
	for _, p := range judgement.Problems {
		errs = append(errs, failure.Finding{Kind: kinds.DoesNotSucceed, Cause: p.Cause, Object: p.Object, Err: errors.New(p.Text)})
	}
	for _, u := range judgement.Missing {
		what := "no step of it fails or waits then: remove it from Unready"
		if len(u.Instead) > 0 {
			what = fmt.Sprintf("correct the reason in Unready: it is %q", u.Instead)
		}
		errs = append(errs, failure.Finding{Kind: kinds.DoesNotSucceed, Asked: true, Err: fmt.Errorf("the scenario says that %s does not become ready, for the reason %q, and that is not so at the end: %s",
			u.Asked.Object, u.Asked.Reason, what)})
	}
	o.Passes.verdict.lines = append(o.Passes.verdict.lines, judgement.Lines...)
	return errs
}

// checkPasses returns an error if nothing was tested: no controller has made a pass, a filter has left out each pass, or the object existed
// in no pass. Otherwise it adds a line to the report for each controller that has made no pass. The caller holds the lock.
func (v Verdict) checkPasses() error {
	o := v.of
	made := map[string]bool{}
	for target := range o.Passes.Outcome {
		made[target.Controller] = true
	}
	controllers := o.Leader.Mgr.Controllers()
	if len(made) == 0 && (len(controllers) > 0 || len(o.world.Log.All()) == 0) {
		return failure.Finding{Kind: kinds.DoesNotSucceed, Err: errors.New("no controller has made a pass, so nothing was tested: does the set-up add a controller to the manager (Complete), " +
			"and does the scenario have an object of its kind?")}
	}
	switch of := &o.Passes.verdict; {
	case !of.ran && of.filtered != "":
		return failure.Finding{Kind: kinds.DoesNotSucceed, Err: fmt.Errorf("each pass was left out by a filter (WithFilter), such as the one over %s, so nothing was tested: "+
			"let the filter return true for an object of the scenario, or give the scenario an object that it selects", of.filtered)}
	case !of.ran && len(of.gone) > 0:
		return failure.Finding{Kind: kinds.DoesNotSucceed, Err: errors.New("no pass was made while its object existed, so nothing was tested: does a filter (WithFilter) or a predicate " +
			"leave out the objects of the scenario?")}
	}
	for _, c := range controllers {
		if !made[c.Name()] {
			o.Passes.verdict.lines = append(o.Passes.verdict.lines, fmt.Sprintf("The controller %s has made no pass: the scenario has no object for it", c.Name()))
		}
	}
	return nil
}

// Notes returns lines about the run that are not its error. If the run has failed, they name each step that fails now, since that may be
// the reason.
func (v Verdict) Notes(action string) []string {
	failed := v.of.world.Failures.First()
	if failed != nil {
		v.Rest(action)
	}
	v.of.world.Mu.Lock()
	defer v.of.world.Mu.Unlock()
	notes := slices.Clone(v.of.Passes.verdict.lines)
	if failed == nil {
		return notes
	}
	if v.of.Leader == nil { // no process has started
		return notes
	}
	if err := v.checkPasses(); err != nil && !strings.Contains(failed.Error(), err.Error()) {
		notes = append(notes, "It may be the reason that "+err.Error())
	}
	for _, p := range v.of.Passes.verdict.book.Failing() {
		if !strings.Contains(failed.Error(), p.Message) || failure.IsAsked(failed) { // the line is not about the error itself
			notes = append(notes, p.Text)
		}
	}
	return notes
}
