package owned

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/readiness"
)

// Ready returns nil if the live object is ready, a *FailedError if it does not become ready unless something changes, and a *WaitingError
// otherwise.
//
// If condition is not empty, the condition of this type decides. Otherwise the rules of kstatus decide, with one addition: if the schema of
// a custom resource declares status.observedGeneration as an integer, the resource is not ready before its controller has set the field. By
// the rules of kstatus alone, a custom resource without a status is ready at once. If the schema also allows a string in the field, the
// addition does not apply.
func (k *Kind) Ready(live client.Object, condition string) error {
	if condition != "" {
		return k.readyByCondition(live, condition)
	}
	result, err := readiness.Compute(live, k.GVK)
	if err != nil {
		return err
	}
	switch result.Status {
	case status.CurrentStatus:
		return k.observed(live)
	case status.FailedStatus:
		return NewFailed(result.Reason, k.Describe(live)+": "+result.Message)
	}
	return NewWaiting(result.Reason, 0, k.Describe(live)+": "+result.Message)
}

// observed returns a *WaitingError if the schema of a custom resource declares an observedGeneration that its controller has not set yet.
func (k *Kind) observed(live client.Object) error {
	if k.Comparer == nil || applyschema.GoType(k.GVK) != nil || !applyschema.DeclaresNumber(k.Comparer.Schema().Child("status"), "observedGeneration") {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return fmt.Errorf("status of %s: %w", k.Describe(live), err)
	}
	if observed, _, _ := unstructured.NestedInt64(content, "status", "observedGeneration"); observed > 0 || live.GetGeneration() == 0 {
		return nil // kstatus has compared the generations
	}
	return NewWaiting(readiness.ReasonNotObserved, 0, fmt.Sprintf("%s: its controller has not reported a status.observedGeneration yet", k.Describe(live)))
}

// readyByCondition returns nil if the condition is True for the live object's generation, and a *WaitingError otherwise.
func (k *Kind) readyByCondition(live client.Object, conditionType string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return fmt.Errorf("conditions of %s: %w", k.Describe(live), err)
	}
	list, _, _ := unstructured.NestedSlice(content, "status", "conditions") // a status without conditions has not reported any
	wait := NewWaiting(reasonConditionMissing, 0, fmt.Sprintf("%s: condition %s is not reported yet", k.Describe(live), conditionType))
	for _, item := range list {
		condition, _ := item.(map[string]any)
		if condition["type"] != conditionType {
			continue
		}
		if observed, ok := condition["observedGeneration"].(int64); ok && observed != live.GetGeneration() {
			return NewWaiting(readiness.ReasonNotObserved, 0, fmt.Sprintf("%s: condition %s is of an earlier generation", k.Describe(live), conditionType))
		}
		if condition["status"] == string(metav1.ConditionTrue) {
			return nil
		}
		reason, _ := condition["reason"].(string)
		message, _ := condition["message"].(string)
		wait = NewWaiting(cmp.Or(reason, reasonConditionMissing), 0, fmt.Sprintf("%s: condition %s is %v: %s", k.Describe(live), conditionType, condition["status"], message))
	}
	return wait
}

// reasonConditionMissing is the reason of the error for a child that waits for a condition, if the condition has no reason of its own.
const reasonConditionMissing = "ConditionNotTrue"

// JoinWaits joins the errors of several children that are not ready. It returns nil if there are none. The joined error has the reason of
// the first error, and the shortest delay that is not zero.
func JoinWaits(waits []*WaitingError) error {
	if len(waits) == 0 {
		return nil
	}
	messages := make([]string, len(waits))
	var after time.Duration
	for i, w := range waits {
		messages[i] = w.message
		if w.after > 0 && (after == 0 || w.after < after) {
			after = w.after
		}
	}
	return NewWaiting(waits[0].reason, after, strings.Join(messages, "; "))
}
