package crd

import (
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

var _ kind.Scaler = (*strategy)(nil)

func (c *strategy) ReplicasPath() []string { return scalePath(c.scale.SpecReplicasPath) }

// scalePath splits a JSON path of a custom resource definition, such as ".spec.replicas", into its fields.
func scalePath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (c *strategy) Scale(object client.Object) (s autoscalingv1.Scale) {
	replicas, _, _ := unstructured.NestedInt64(fieldsOf(object), scalePath(c.scale.SpecReplicasPath)...)
	current, _, _ := unstructured.NestedInt64(fieldsOf(object), scalePath(c.scale.StatusReplicasPath)...)
	s.Spec.Replicas, s.Status.Replicas = int32(replicas), int32(current)
	if path := c.scale.LabelSelectorPath; path != nil {
		s.Status.Selector, _, _ = unstructured.NestedString(fieldsOf(object), scalePath(*path)...)
	}
	return s
}

func (c *strategy) SetScale(obj client.Object, scale *autoscalingv1.Scale) error {
	return unstructured.SetNestedField(fieldsOf(obj), int64(scale.Spec.Replicas), c.ReplicasPath()...)
}

// validateScale validates the fields that the scale subresource shows.
func (c *strategy) validateScale(obj client.Object) field.ErrorList {
	if c.scale == nil {
		return nil
	}
	return append(validateReplicas(obj, c.scale.SpecReplicasPath), c.validateScaleStatus(obj)...)
}

func (c *strategy) validateScaleStatus(obj client.Object) field.ErrorList {
	if c.scale == nil {
		return nil
	}
	errs := validateReplicas(obj, c.scale.StatusReplicasPath)
	if path := c.scale.LabelSelectorPath; path != nil {
		if selector, _, err := unstructured.NestedString(fieldsOf(obj), scalePath(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(obj client.Object, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(fieldsOf(obj), scalePath(path)...)
	message := ""
	switch {
	case err != nil:
		message = err.Error()
	case replicas < 0:
		message = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		message = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), replicas, message)}
}
