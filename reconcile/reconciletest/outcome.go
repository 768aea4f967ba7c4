package reconciletest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// over names what passes run over.
type over struct {
	controller string
	request    ctrl.Request
}

func (o over) compare(p over) int {
	return cmp.Or(cmp.Compare(o.controller, p.controller), cmp.Compare(o.request.String(), p.request.String()))
}

// outcome is how a pass ended.
type outcome struct {
	pass   int
	result ctrl.Result
	err    error
}

// checkErrors makes sure that the operator has done its work when all is quiet at the end, and does not rest
// between vain attempts. A terminal error is an answer: it asks for no other attempt.
func (r *run) checkErrors() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range slices.SortedFunc(maps.Keys(r.ended), over.compare) {
		if vain := r.inVain(r.ended[o]); vain != "" {
			return fmt.Errorf("after the last action passes over %s %s still end %s\n"+
				"If the last action is meant to bring that about, let another one mend it, or the object be deleted",
				o.controller, nameOf(o.request.NamespacedName), vain)
		}
	}
	return nil
}

// inVain says what kept a pass from its end, or gives "".
func (r *run) inVain(o outcome) string {
	switch {
	case errors.Is(o.err, ctrlreconcile.TerminalError(nil)):
	case o.err != nil:
		return "in an error: " + o.err.Error()
	case o.result.RequeueAfter > 0:
		for _, request := range r.ledger.all() {
			if request.Pass == o.pass && request.isRefused() {
				return fmt.Sprintf("with a delay of %s, since %s is refused: %s", o.result.RequeueAfter, request.String(), request.Err)
			}
		}
	case o.result.Requeue: //nolint:staticcheck // reconcilers still use it
		return "by asking for another one (Requeue)"
	}
	return ""
}

// isRefused reports whether the API server did not take a write, for a reason that is no answer to a question
// such as whether the object exists.
func (r *Request) isRefused() bool {
	return r.External == "" && r.IsWrite() && r.Err != nil && !apierrors.IsNotFound(r.Err) && !apierrors.IsAlreadyExists(r.Err)
}
