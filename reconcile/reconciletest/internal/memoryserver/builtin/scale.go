package builtin

import (
	"fmt"
	"reflect"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

func (b *strategy) ReplicasPath() []string { return []string{"spec", "replicas"} }

func (b *strategy) Scale(object client.Object) (s autoscalingv1.Scale) {
	spec, status := fieldOf(object, "Spec"), fieldOf(object, "Status")
	s.Spec.Replicas = ptr.Deref(spec.FieldByName("Replicas").Interface().(*int32), 0)
	s.Status.Replicas = int32(status.FieldByName("Replicas").Int())
	if selector, err := metav1.LabelSelectorAsSelector(spec.FieldByName("Selector").Interface().(*metav1.LabelSelector)); err == nil {
		s.Status.Selector = selector.String()
	}
	return s
}

func (b *strategy) SetScale(obj client.Object, scale *autoscalingv1.Scale) error {
	replicas := scale.Spec.Replicas
	if replicas < 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, obj.GetName(), field.ErrorList{
			field.Invalid(specPath.Child("replicas"), replicas, "must be greater than or equal to 0")})
	}
	if scale.UID != "" && scale.UID != obj.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Group: b.gvk.Group, Resource: b.plural + "/scale"}, obj.GetName(), kind.UIDMismatch(scale.UID, obj.GetUID()))
	}
	fieldOf(obj, "Spec").FieldByName("Replicas").Set(reflect.ValueOf(&replicas))
	return nil
}

// ScaleFieldManager returns the field manager of the scale subresource, which has one field.
var ScaleFieldManager = sync.OnceValue(func() *managedfields.FieldManager {
	parser, err := typed.NewParser(scaleSchema)
	if err != nil {
		panic(err)
	}
	k := &kind.Kind{GVK: autoscalingv1.SchemeGroupVersion.WithKind("Scale")}
	k.Strategy = &strategy{gvk: k.GVK, prototype: &autoscalingv1.Scale{}}
	return kind.NewFieldManager(k, scaleTypes{parser.Type("scale")}, kind.ScaleSubresource)
})

// scaleSchema is the schema of a scale. The schemas of client-go do not have it.
const scaleSchema = `types:
- name: scale
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: any}}
    - {name: spec, type: {map: {fields: [{name: replicas, type: {scalar: numeric}}]}}}
    - {name: status, type: {map: {fields: [{name: replicas, type: {scalar: numeric}}, {name: selector, type: {scalar: string}}]}}}
- name: any
  scalar: untyped
  list: {elementType: {namedType: any}, elementRelationship: atomic}
  map: {elementType: {namedType: any}, elementRelationship: separable}
`

type scaleTypes struct{ scale typed.ParseableType }

func (t scaleTypes) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return t.scale.FromStructured(object, options...)
}

// TypedToObject is called for applies. Before Kubernetes 0.37 it is also called for updates.
func (t scaleTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the scale is no object after merging")
	}
	scale := &autoscalingv1.Scale{}
	return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(content, scale)
}
