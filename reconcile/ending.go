package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// state is a way in which a step can end. Better states come first. A pass ends as its worst step
// does.
type state int

const (
	succeeded state = iota
	skipped
	waiting
	conflicted // another writer was faster, or the cache is behind: not a failure
	failed
	stalled
)

// ending is what follows from a state.
type ending struct {
	label   string                 // the value in metrics and spans
	status  metav1.ConditionStatus // the status of the condition of the step; if it is empty, the conditions stay as they are until the next pass
	summary string                 // the condition beside Ready that is True if this is the worst state; empty for none
	words   string                 // what the log says; empty for nothing
	isDone  bool                   // a request counts as handled, and the functions that steps have registered by AfterSteps may run
	isFault bool                   // the pass writes a warning to the log and an event, an entry to a history, and an error to spans and metrics
	lasts   bool                   // only a change can heal it: a terminal error; the next pass comes after the delay [Retries.Stalled]

	takesReason bool // the reason of an outer error replaces the reason of the outcome
}

// endings has a row for each state. classify.go decides which errors lead to which state.
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

// Results of passes that end before their steps have outcomes, as spans show them.
const (
	resultGone      = "gone"      // the object does not exist, or its cleanup has finished
	resultFiltered  = "filtered"  // the object is not ours
	resultPaused    = "paused"    // no step runs
	resultUnchanged = "unchanged" // no step would find anything to do
	resultFinalized = "finalized" // the cleanup has finished in this pass
)
