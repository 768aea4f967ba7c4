package memoryserver

import (
	"context"
	"fmt"
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
)

// custom are the rules of a kind with a custom resource definition, whose objects are held
// unstructured.
type custom struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	hasStatus  bool
	scale      *apiextensionsv1.CustomResourceSubresourceScale

	schema          *structuralschema.Structural
	validator       apiservervalidation.SchemaValidator
	statusValidator apiservervalidation.SchemaValidator // nil: the status has no schema
	expressions     *cel.Validator                      // nil: there are none
}

var _ rules = (*custom)(nil)

func (c *custom) empty() client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(c.gvk)
	return object
}

func (c *custom) decode(content []byte, strict bool) (client.Object, error) {
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
	made, err := c.fromMap(object, strict)
	if len(twice) > 0 && (err == nil || runtime.IsStrictDecodingError(err)) {
		if unknown, is := runtime.AsStrictDecodingError(err); is {
			twice = append(twice, unknown.Errors()...)
		}
		return nil, runtime.NewStrictDecodingError(twice)
	}
	return made, err
}

func (c *custom) fromMap(content map[string]any, strict bool) (client.Object, error) {
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

func (c *custom) encode(object client.Object) ([]byte, error) {
	return utiljson.Marshal(object.(*unstructured.Unstructured).Object)
}

func (c *custom) assign(_ *table, _, _ client.Object) error { return nil }

func (c *custom) grace(client.Object, *int64) int64 { return 0 }

func (c *custom) holds(client.Object) bool { return false }

func (c *custom) setDefaults(object client.Object) {
	defaulting.Default(object.(*unstructured.Unstructured).Object, c.schema)
}

func (c *custom) prepareCreate(made client.Object) {
	if c.hasStatus {
		delete(fieldsOf(made), "status")
	}
	made.SetGeneration(1)
}

func (c *custom) prepareUpdate(made, live client.Object) {
	if c.hasStatus {
		keepField(made, live, "status")
	}
	if !equality.Semantic.DeepEqual(without(fieldsOf(made), "metadata"), without(fieldsOf(live), "metadata")) {
		made.SetGeneration(live.GetGeneration() + 1)
	}
}

// prepareStatus keeps everything but the status, and who manages which field.
func (c *custom) prepareStatus(made, live client.Object) {
	status, has := fieldsOf(made)["status"]
	managers, managed := fieldsOf(made)["metadata"].(map[string]any)["managedFields"]
	kept := live.DeepCopyObject().(*unstructured.Unstructured).Object
	made.(*unstructured.Unstructured).Object = kept
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

func keepField(made, live client.Object, name string) {
	if value, has := fieldsOf(live)[name]; has {
		fieldsOf(made)[name] = runtime.DeepCopyJSONValue(value)
		return
	}
	delete(fieldsOf(made), name)
}

// settle drops what an object loses when it is decoded. What was not applied has been decoded before.
func (c *custom) settle(made client.Object, applied bool) (read, stored client.Object, err error) {
	if !applied {
		return made, made, nil
	}
	read = made.DeepCopyObject().(client.Object)
	_, err = c.coerce(fieldsOf(read), false)
	return read, made, err
}

func (c *custom) equal(a, b client.Object) bool { return reflect.DeepEqual(fieldsOf(a), fieldsOf(b)) }

func (c *custom) validate(made client.Object) field.ErrorList {
	errs := c.validateContent(made)
	return append(errs, c.validateExpressions(context.Background(), made, nil, errs)...)
}
