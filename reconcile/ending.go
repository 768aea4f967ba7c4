package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// state is how a step has ended. Better states come first. The state of a pass is the worst state of its steps.
type state int

const (
	succeeded state = iota
	skipped
	waiting
	conflicted // another writer was faster, or the cache is behind; this is not a failure
	failed
	stalled
)

// ending says what a pass does for a state.
type ending struct {
	label   string                 // the value in metrics and spans
	status  metav1.ConditionStatus // the status of the step's condition; if empty, the conditions stay as they are until the next pass
	summary string                 // the condition that is set to True in addition to Ready, if this is the worst state; empty for none
	words   string                 // the text in the log; empty if nothing is logged
	isDone  bool                   // a request of a person counts as handled, and the functions that steps have registered by AfterSteps may run
	isFault bool                   // it is a failure: there are a warning in the log and an event, an entry in a history, and an error in spans and metrics
	lasts   bool                   // a terminal error, which only a change can remove; the next pass comes after [Retries.Stalled]

	takesReason bool // the reason of an outer error replaces the reason of the outcome
}

// endings has an entry for each state. classify.go decides which errors lead to which state.
var endings = [...]ending{
	succeeded:  {label: "succeeded", status: metav1.ConditionTrue, isDone: true},
	skipped:    {label: "skipped", status: metav1.ConditionUnknown, summary: conditions.Reconciling},
	waiting:    {label: "waiting", status: metav1.ConditionFalse, summary: conditions.Reconciling, words: "Step waits", isDone: true},
	conflicted: {label: "conflicted", words: "Step lost a race and is tried again", takesReason: true},
	failed:     {label: "failed", status: metav1.ConditionFalse, summary: conditions.Reconciling, words: "Step failed", isFault: true, takesReason: true},
	stalled: {
		label: "stalled", status: metav1.ConditionFalse, summary: conditions.Stalled, words: "Step cannot succeed until something changes",
		isFault: true, lasts: true, takesReason: true,
	},
}

func (s state) ending() *ending { return &endings[s] }

// resultsOfSteps returns the labels of the states in which a step that has run can end.
func resultsOfSteps() (labels []string) {
	for i := range endings {
		if state(i) != skipped {
			labels = append(labels, endings[i].label)
		}
	}
	return labels
}

// These are the results, in spans, of passes whose steps have no outcomes.
const (
	resultGone      = "gone"      // the object does not exist, or was cleaned up by an earlier pass
	resultFiltered  = "filtered"  // the filter excludes the object
	resultPaused    = "paused"    // no step runs
	resultUnchanged = "unchanged" // no step would find anything to do
	resultFinalized = "finalized" // this pass has finished the cleanup
)
