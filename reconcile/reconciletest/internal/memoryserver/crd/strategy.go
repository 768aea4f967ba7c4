package crd

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// strategy implements [kind.Strategy] for a custom kind: it decodes, defaults and validates its objects. The server holds them
// unstructured.
type strategy struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	hasStatus  bool
	scale      *apiextensionsv1.CustomResourceSubresourceScale

	schema          *structuralschema.Structural
	validator       apiservervalidation.SchemaValidator
	statusValidator apiservervalidation.SchemaValidator // nil: the status has no schema
	expressions     *cel.Validator                      // nil: the schema has no CEL rules
}

var _ kind.Strategy = (*strategy)(nil)

func (c *strategy) New() client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(c.gvk)
	return object
}

func (c *strategy) Decode(content []byte, strict bool) (client.Object, error) {
	object := map[string]any{}
	var twice []error
	var err error
	if strict {
		twice, err = json.UnmarshalStrict(content, &object)
	} else {
		err = json.UnmarshalCaseSensitivePreserveInts(content, &object)
	}
	if err != nil {
		return nil, err
	}
	obj, err := c.FromMap(object, strict)
	if len(twice) > 0 && (err == nil || runtime.IsStrictDecodingError(err)) {
		if unknown, is := runtime.AsStrictDecodingError(err); is {
			twice = append(twice, unknown.Errors()...)
		}
		return nil, runtime.NewStrictDecodingError(twice)
	}
	return obj, err
}

func (c *strategy) FromMap(content map[string]any, strict bool) (client.Object, error) {
	unknown, err := c.coerce(content, strict)
	if err != nil {
		return nil, err
	}
	if strict && len(unknown) > 0 {
		var errs []error
		for _, path := range unknown {
			errs = append(errs, fmt.Errorf("unknown field %q", path))
		}
		return nil, runtime.NewStrictDecodingError(errs)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(c.gvk)
	return object, nil
}

func (c *strategy) Encode(object client.Object) ([]byte, error) {
	return utiljson.Marshal(object.(*unstructured.Unstructured).Object)
}

// FromObject always returns false. Objects of custom kinds are unstructured, so what a client sends is encoded as JSON, decoded and pruned.
func (c *strategy) FromObject(client.Object) (client.Object, bool, error) { return nil, false, nil }

func (c *strategy) Allocate(*kind.Kind, iter.Seq[client.Object], client.Object, client.Object) error {
	return nil
}

func (c *strategy) GracePeriod(client.Object, *int64) int64 { return 0 }

func (c *strategy) HoldDeletion(client.Object) bool { return false }

func (c *strategy) SetDefaults(object client.Object) {
	defaulting.Default(object.(*unstructured.Unstructured).Object, c.schema)
}

func (c *strategy) PrepareForCreate(obj client.Object) {
	if c.hasStatus {
		delete(fieldsOf(obj), "status")
	}
	obj.SetGeneration(1)
}

func (c *strategy) PrepareForUpdate(obj, live client.Object) {
	if c.hasStatus {
		keepField(obj, live, "status")
	}
	if !equality.Semantic.DeepEqual(withoutMetadata(obj), withoutMetadata(live)) {
		obj.SetGeneration(live.GetGeneration() + 1)
	}
}

// PrepareForStatusUpdate restores everything except the status and the managed fields.
func (c *strategy) PrepareForStatusUpdate(obj, live client.Object) {
	status, has := fieldsOf(obj)["status"]
	managers, managed := fieldsOf(obj)["metadata"].(map[string]any)["managedFields"]
	kept := live.DeepCopyObject().(*unstructured.Unstructured).Object
	obj.(*unstructured.Unstructured).Object = kept
	delete(kept, "status")
	if has {
		kept["status"] = status
	}
	metadata := kept["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	if managed {
		metadata["managedFields"] = managers
	}
}

func fieldsOf(object client.Object) map[string]any {
	return object.(*unstructured.Unstructured).Object
}

func withoutMetadata(object client.Object) map[string]any {
	rest := maps.Clone(fieldsOf(object))
	delete(rest, "metadata")
	return rest
}

func keepField(obj, live client.Object, name string) {
	if value, has := fieldsOf(live)[name]; has {
		fieldsOf(obj)[name] = runtime.DeepCopyJSONValue(value)
		return
	}
	delete(fieldsOf(obj), name)
}

// Normalize returns obj as it is stored. If obj comes from an apply, clients read a copy without unknown fields: see coerce. Every other
// object has lost these fields when it was decoded, so clients read obj itself.
func (c *strategy) Normalize(obj client.Object, applied bool) (read, stored client.Object, err error) {
	if !applied {
		return obj, obj, nil
	}
	read = obj.DeepCopyObject().(client.Object)
	_, err = c.coerce(fieldsOf(read), false)
	return read, obj, err
}

func (c *strategy) Equal(a, b client.Object) bool { return reflect.DeepEqual(fieldsOf(a), fieldsOf(b)) }

func (c *strategy) Validate(obj client.Object) field.ErrorList {
	errs := c.validateContent(obj)
	return append(errs, c.validateExpressions(context.Background(), obj, nil, errs)...)
}
