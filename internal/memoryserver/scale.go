package memoryserver

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scalePath splits what a custom resource definition calls a JSON path, such as ".spec.replicas".
func scalePath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// validateScale checks what the scale subresource shows.
func (c *custom) validateScale(made client.Object) field.ErrorList {
	if c.scale == nil {
		return nil
	}
	return append(checkScaled(made, c.scale.SpecReplicasPath), c.validateScaleStatus(made)...)
}

func (c *custom) validateScaleStatus(made client.Object) field.ErrorList {
	if c.scale == nil {
		return nil
	}
	errs := checkScaled(made, c.scale.StatusReplicasPath)
	if path := c.scale.LabelSelectorPath; path != nil {
		if selector, _, err := unstructured.NestedString(fieldsOf(made), scalePath(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return errs
}

func checkScaled(made client.Object, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(fieldsOf(made), scalePath(path)...)
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
