package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// conversionTimeout is how long the API server waits for a conversion webhook. It is the parameter timeout in the address of the request.
const conversionTimeout = "30s"

// Convert calls the conversion webhook at an address, and returns the object in the other version. The errors have the text of the real API
// server.
func (c *Caller) Convert(address string, object *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	from := object.GroupVersionKind()
	review, err := c.reviewConversion(address, object, to)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %w", from, err)
	}
	if n := len(review.ConvertedObjects); n != 1 {
		return nil, fmt.Errorf("conversion webhook for %v returned %d objects, expected 1", from, n)
	}
	converted := &unstructured.Unstructured{}
	if err := converted.UnmarshalJSON(review.ConvertedObjects[0].Raw); err != nil {
		return nil, err
	}
	if got := converted.GroupVersionKind().GroupVersion(); got != to {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", from, to, got)
	}
	if got := converted.GetKind(); got != from.Kind {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid kind (expected %v, received %v)", from, from.Kind, got)
	}
	if err := checkConverted(object, converted); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object: %w", from, err)
	}
	if err := restoreMetadata(object, converted); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", from, err)
	}
	return converted, nil
}

// UnreachableConversion returns the error of a conversion if the webhook at the address cannot be reached.
func UnreachableConversion(address string, from schema.GroupVersionKind) error {
	return fmt.Errorf("conversion webhook for %v failed: %w", from, &url.Error{Op: "Post", URL: address + "?timeout=" + conversionTimeout, Err: syscall.ECONNREFUSED})
}

// reviewConversion sends an object to a conversion webhook, and returns the answer.
func (c *Caller) reviewConversion(address string, object *unstructured.Unstructured, to schema.GroupVersion) (*apiextensionsv1.ConversionResponse, error) {
	sent := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: c.nextUID(), DesiredAPIVersion: to.String(), Objects: []runtime.RawExtension{{Object: object}}},
	}
	var review apiextensionsv1.ConversionReview
	if err := c.post(address, conversionTimeout, sent, &review); err != nil {
		return nil, err
	}
	answer := review.Response
	switch {
	case review.GroupVersionKind() != sent.GroupVersionKind():
		return nil, fmt.Errorf("expected webhook response of %v, got %v", sent.GroupVersionKind(), review.GroupVersionKind())
	case answer == nil:
		return nil, errors.New("no response provided")
	case answer.UID != sent.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", sent.Request.UID, answer.UID)
	case answer.Result.Status == metav1.StatusSuccess:
		return answer, nil
	case answer.Result.Message != "":
		return nil, errors.New(answer.Result.Message)
	}
	return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", answer.Result.Status)
}

// checkConverted returns an error if a conversion has changed the identity of the object, such as its name.
func checkConverted(before, after *unstructured.Unstructured) error {
	for _, same := range []struct{ what, before, after string }{
		{"name", before.GetName(), after.GetName()},
		{"namespace", before.GetNamespace(), after.GetNamespace()},
		{"UID", string(before.GetUID()), string(after.GetUID())},
	} {
		if same.before != same.after {
			return fmt.Errorf("must have the same %s: %s != %s", same.what, same.before, same.after)
		}
	}
	return nil
}

// restoreMetadata restores the metadata that the object had before the conversion. It keeps the labels and annotations that the conversion
// has set.
func restoreMetadata(before, after *unstructured.Unstructured) error {
	content, found := after.Object["metadata"]
	if !found {
		return errors.New("missing metadata in converted object")
	}
	converted, ok := content.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", content)
	}
	kept, _ := before.Object["metadata"].(map[string]any)
	metadata := runtime.DeepCopyJSON(kept)
	for _, name := range []string{"labels", "annotations"} {
		delete(metadata, name)
		if converted[name] == nil {
			continue
		}
		if err := checkStrings(name, converted[name], kept[name]); err != nil {
			return err
		}
		metadata[name] = converted[name]
	}
	after.Object["metadata"] = metadata
	return nil
}

// checkStrings returns an error if the labels or annotations are invalid, and a conversion has changed them.
func checkStrings(name string, value, before any) error {
	values, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
	}
	had, _ := before.(map[string]any)
	changed, made := len(had) != len(values), make(map[string]string, len(values))
	for key, value := range values {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, value)
		}
		made[key], changed = text, changed || had[key] != value
	}
	var errs field.ErrorList
	switch {
	case !changed:
	case name == "labels":
		errs = metav1validation.ValidateLabels(made, field.NewPath("metadata", name))
	default:
		errs = validation.ValidateAnnotations(made, field.NewPath("metadata", "annotation"))
	}
	return errs.ToAggregate()
}
