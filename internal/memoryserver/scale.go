package memoryserver

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const scaleSubresource = "scale"

// scaler reads and writes the number of replicas of a kind.
type scaler interface {
	replicasPath() []string
	scaled(client.Object) autoscalingv1.Scale // spec and status only
	rescale(made client.Object, scale *autoscalingv1.Scale) error
}

// scaleOf shows an object as its scale subresource.
func scaleOf(k *kind, object client.Object) *autoscalingv1.Scale {
	s := k.rules.(scaler).scaled(object)
	s.ObjectMeta = metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
	}
	s.APIVersion, s.Kind = "autoscaling/v1", "Scale"
	return &s
}

// rescale sets the number of replicas. The caller holds the lock.
func (s *Server) rescale(k *kind, key client.ObjectKey, uid types.UID, change func(*autoscalingv1.Scale) error, options writeOptions) (*autoscalingv1.Scale, error) {
	stored, err := s.modify(k, key, scaleSubresource, uid, options, func(live client.Object) (client.Object, error) {
		scale := scaleOf(k, live)
		if err := change(scale); err != nil {
			return nil, err
		}
		made := live.DeepCopyObject().(client.Object)
		if err := k.rules.(scaler).rescale(made, scale); err != nil {
			return nil, err
		}
		if scale.ResourceVersion != "" {
			made.SetResourceVersion(scale.ResourceVersion)
		}
		return made, own(k, made, live, scale, options.manager)
	})
	if err != nil {
		return nil, err
	}
	return scaleOf(k, stored), nil
}

func (b *builtIn) replicasPath() []string { return []string{"spec", "replicas"} }

func (b *builtIn) scaled(object client.Object) (s autoscalingv1.Scale) {
	spec, status := part(object, "Spec"), part(object, "Status")
	s.Spec.Replicas = ptr.Deref(spec.FieldByName("Replicas").Interface().(*int32), 0)
	s.Status.Replicas = int32(status.FieldByName("Replicas").Int())
	if selector, err := metav1.LabelSelectorAsSelector(spec.FieldByName("Selector").Interface().(*metav1.LabelSelector)); err == nil {
		s.Status.Selector = selector.String()
	}
	return s
}

func (b *builtIn) rescale(made client.Object, scale *autoscalingv1.Scale) error {
	replicas := scale.Spec.Replicas
	if replicas < 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, made.GetName(), field.ErrorList{
			field.Invalid(specPath.Child("replicas"), replicas, "must be greater than or equal to 0")})
	}
	if scale.UID != "" && scale.UID != made.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Group: b.gvk.Group, Resource: b.plural + "/scale"}, made.GetName(), uidMismatch(scale.UID, made.GetUID()))
	}
	part(made, "Spec").FieldByName("Replicas").Set(reflect.ValueOf(&replicas))
	return nil
}

func (c *custom) replicasPath() []string { return scalePath(c.scale.SpecReplicasPath) }

// scalePath splits what a custom resource definition calls a JSON path, such as ".spec.replicas".
func scalePath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (c *custom) scaled(object client.Object) (s autoscalingv1.Scale) {
	replicas, _, _ := unstructured.NestedInt64(fieldsOf(object), scalePath(c.scale.SpecReplicasPath)...)
	current, _, _ := unstructured.NestedInt64(fieldsOf(object), scalePath(c.scale.StatusReplicasPath)...)
	s.Spec.Replicas, s.Status.Replicas = int32(replicas), int32(current)
	if path := c.scale.LabelSelectorPath; path != nil {
		s.Status.Selector, _, _ = unstructured.NestedString(fieldsOf(object), scalePath(*path)...)
	}
	return s
}

func (c *custom) rescale(made client.Object, scale *autoscalingv1.Scale) error {
	return unstructured.SetNestedField(fieldsOf(made), int64(scale.Spec.Replicas), c.replicasPath()...)
}

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
