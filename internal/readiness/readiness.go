// Package readiness computes whether an object has reached the state that its spec asks for, by the rules of kstatus
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md), and by one more: a Service of type LoadBalancer has an
// address. For kstatus it is ready as soon as it has a cluster IP, before anybody can reach it from outside.
//
// kstatus takes only unstructured objects, and converting a typed object costs more than the computation itself. So this package implements
// the rules for typed Deployments and Services, the most frequent kinds. It converts the other workloads without their pod templates. Tests
// compare the results with kstatus.
package readiness

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ReasonNotObserved is the Reason of a Deployment, StatefulSet or other object whose controller has not observed its latest generation yet.
// kstatus uses the same word.
const ReasonNotObserved = "LatestGenerationNotObserved"

// Result is the readiness of an object.
type Result struct {
	// Status is CurrentStatus if the object is ready and FailedStatus if it does not become ready unless something
	// changes. Otherwise the object is not ready yet.
	Status status.Status
	// Reason, in CamelCase, and Message explain why the object is not ready. They are empty if Status is CurrentStatus.
	Reason, Message string
}

// Compute returns the readiness of obj, an object of any kind with its complete status. gvk is the kind of obj, which
// typed objects do not carry.
func Compute(obj client.Object, gvk schema.GroupVersionKind) (Result, error) {
	if result, ok := computeTyped(obj); ok {
		return result, nil
	}
	return computeUnstructured(withoutUnread(obj), gvk)
}

// ComputeInScheme does the same as [Compute], and looks up the kind of obj in the scheme if it is needed. It is not needed for a
// *appsv1.Deployment, a *corev1.Service, a *corev1.ConfigMap and a *corev1.Secret. If the scheme does not have the type of obj, the error
// says so.
func ComputeInScheme(obj client.Object, scheme *runtime.Scheme) (Result, error) {
	if result, ok := computeTyped(obj); ok {
		return result, nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Result{}, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	return computeUnstructured(withoutUnread(obj), gvk)
}

// computeUnstructured converts the object and calls kstatus.
func computeUnstructured(obj client.Object, gvk schema.GroupVersionKind) (Result, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return Result{}, fmt.Errorf("status of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	if _, own := obj.(runtime.Unstructured); own { // the converter returns the map of the object itself, which others may read
		content = maps.Clone(content)
	}
	readGeneration(content)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	computed, err := status.Compute(u)
	if err != nil {
		return Result{}, fmt.Errorf("status of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	if computed.Status == status.CurrentStatus {
		if gvk.Group == corev1.GroupName && gvk.Kind == "Service" {
			return ofServiceContent(content), nil
		}
		return Result{Status: status.CurrentStatus}, nil
	}
	result := Result{computed.Status, string(computed.Status), computed.Message}
	if len(computed.Conditions) > 0 && computed.Conditions[0].Reason != "" {
		result.Reason = computed.Conditions[0].Reason
	}
	return result, nil
}

// readGeneration replaces a status.observedGeneration that is a string by its number. It changes content, and not the status map itself,
// which others may read. A controller that writes its status as Protobuf does (https://protobuf.dev/programming-guides/json) sends 64-bit
// numbers as strings. Istio is one of them.
func readGeneration(content map[string]any) {
	state, _ := content["status"].(map[string]any)
	text, isText := state["observedGeneration"].(string)
	if !isText {
		return
	}
	if generation, err := strconv.ParseInt(text, 10, 64); err == nil {
		state = maps.Clone(state)
		state["observedGeneration"] = generation
		content["status"] = state
	}
}
