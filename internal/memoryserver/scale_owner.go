package memoryserver

import (
	"fmt"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// own gives the replicas to who sets them, by way of the scale's own managed fields.
func own(k *kind, made, live client.Object, scale *autoscalingv1.Scale, manager string) (err error) {
	path := fieldpath.Path{}
	for _, step := range k.rules.(scaler).replicasPath() {
		path = append(path, fieldpath.PathElement{FieldName: &step})
	}
	gv := k.gvk.GroupVersion()
	owners := managedfields.NewScaleHandler(live.GetManagedFields(), gv, managedfields.ResourcePathMappings{gv.String(): path})
	before := scaleOf(k, live)
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return err
	}
	scale.APIVersion, scale.Kind = before.APIVersion, before.Kind
	after := scaleFields().UpdateNoErrors(before, scale, manager).(*autoscalingv1.Scale)
	managers, err := owners.ToParent(after.ManagedFields)
	made.SetManagedFields(managers)
	return err
}

// scaleFields manages who owns the one field that a scale has.
var scaleFields = sync.OnceValue(func() *managedfields.FieldManager {
	parser, err := typed.NewParser(scaleSchema)
	if err != nil {
		panic(err)
	}
	k := &kind{gvk: autoscalingv1.SchemeGroupVersion.WithKind("Scale")}
	k.rules = &builtIn{gvk: k.gvk, like: &autoscalingv1.Scale{}}
	return newFieldManager(k, scaleTypes{parser.Type("scale")}, scaleSubresource, nil)
})

// scaleSchema is that of a scale, which client-go's schemas do not have.
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

func (t scaleTypes) TypedToObject(*typed.TypedValue) (runtime.Object, error) {
	return nil, fmt.Errorf("a scale cannot be applied")
}
