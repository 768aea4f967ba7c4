package operator

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// cause returns the error with which a pass ended. If it ended without one, cause returns the first error of its requests, or nil.
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

// hintOf returns what the author of the test may do about a pass that has not succeeded in a run without faults. err is the error of the
// pass. If the pass had none, it is the error of its first refused request, or nil if the pass only asked for another pass (Requeue).
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
	return "If a webhook fills in defaults in a cluster, name its configuration in the scenario's Webhooks, or give the defaults to the scenario's objects"
}

// StatusHint returns what to do if the API server has refused a field of the status. It returns "" for any other error.
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
