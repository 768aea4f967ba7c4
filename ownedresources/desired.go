package ownedresources

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// declared is an object as the caller of [Apply] gave it, or as the function of a [Child] returned it.
type declared struct {
	kind    *kind
	object  client.Object
	options *childOptions
	binding binding
	builder string        // see opblocks.dev/builder; empty for none
	order   int           // the rank of its child, see [Child.After]
	hold    string        // what has to become ready before the object may be created or changed; empty for nothing
	err     error         // what is wrong with it
	live    client.Object // the live object after the apply; nil if there is none
	reads   []readVersion // what its inputs have read
	content string        // the content of a Job that runs once, see opblocks.dev/content
}

func (d *declared) objectName() record.Name {
	return record.NameOf(d.kind.gvk.GroupKind(), d.object)
}

// isNamed reports whether an object of this kind has the declared one's name.
func (d *declared) isNamed(gvk schema.GroupVersionKind, obj client.Object) bool {
	return d.object.GetName() == obj.GetName() && d.object.GetNamespace() == obj.GetNamespace() &&
		d.kind.gvk.GroupKind() == gvk.GroupKind()
}

// declare looks up the kinds of the objects given to [Apply], and validates them.
func (a *applier) declare(o *owner, objs []client.Object) ([]declared, error) {
	all := make([]declared, len(objs))
	for i, obj := range objs {
		if isNil(obj) {
			return nil, fmt.Errorf("desired object %d: it is nil", i+1)
		}
		k, err := a.kinds.of(obj, o.client.Scheme())
		if err != nil {
			return nil, fmt.Errorf("desired object %d: %w", i+1, err)
		}
		all[i] = declared{kind: k, object: obj, options: &childOptions{}}
	}
	return all, a.validate(o, all)
}

// validate finds what is wrong with the objects before any request. It sets the owner's namespace on objects without
// one.
func (a *applier) validate(o *owner, all []declared) error {
	for i, d := range all {
		if err := a.validateOne(o, d.kind, d.object); err != nil {
			return fmt.Errorf("desired object %d: %w", i+1, err)
		}
		for _, other := range all[:i] {
			if other.isNamed(d.kind.gvk, d.object) {
				return fmt.Errorf("desired object %d: %s is desired twice: give each object once", i+1, d.kind.describe(d.object))
			}
		}
	}
	return nil
}

func (a *applier) validateOne(o *owner, k *kind, obj client.Object) error {
	if obj.GetName() == "" {
		return fmt.Errorf("%s has no name: set one", k.gvk.Kind)
	}
	if o.namespace == "" { // a cluster-scoped owner may own objects of any scope and namespace
		if namespaced, known, err := a.isNamespaced(o, k, obj); err != nil || known && namespaced && obj.GetNamespace() == "" {
			return cmp.Or(err, fmt.Errorf("%s has no namespace, and its owner %s is cluster-scoped: set a namespace", k.describe(obj), o))
		}
		return nil
	}
	switch namespaced, known, err := a.isNamespaced(o, k, obj); {
	case err != nil:
		return err
	case known && !namespaced:
		return fmt.Errorf("%s %s is cluster-scoped and its owner %s is not: the garbage collector would delete it at once; a child of Ensure may be cluster-scoped with the option Anywhere", k.gvk.Kind, obj.GetName(), o)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(o.namespace)
	}
	if obj.GetNamespace() != o.namespace {
		return fmt.Errorf("%s is in another namespace than its owner %s: the garbage collector would delete it at once; a child of Ensure may be there with the option Anywhere", k.describe(obj), o)
	}
	return nil
}

// isNamespaced reports whether a kind is namespaced. known is false for a kind that is not served, and with a fake
// client that has no scopes: then the request that writes the object finds out.
func (a *applier) isNamespaced(o *owner, k *kind, obj client.Object) (namespaced, known bool, err error) {
	scope, ok := a.scopes.Load(k)
	if !ok {
		is, err := o.client.IsObjectNamespaced(obj)
		switch {
		case meta.IsNoMatchError(err):
			return false, false, nil
		case err != nil:
			return false, false, fmt.Errorf("scope of %s: %w", k.gvk.Kind, err)
		}
		scope, _ = a.scopes.LoadOrStore(k, is)
	}
	namespaced, _ = scope.(bool)
	return namespaced, true, nil
}

// desired is an object in the form in which it is compared and sent.
type desired struct {
	kind    *kind
	object  client.Object
	full    client.Object // object with the fields of [Child.CreateOnly]
	sum     sum           // the hash of object
	owner   *owner
	options *childOptions
	binding binding
	builder string    // see opblocks.dev/builder; empty for none
	former  types.UID // the UID of the owner that is gone, if the object is adopted from it
	order   int
	hold    string // see declared
	// resetsOrder sends order 0: without it, an order that somebody else has set would stay.
	resetsOrder bool
	// generate are the keys of [Child.Generate] for which the object has no value of its own. generated are their values in
	// the next write. generatedFrom is the version of the live object for which these values were decided.
	generate      []generatedKey
	generated     map[string][]byte
	generatedFrom string
	// replicas is the number of replicas of the StatefulSet that the object replaces, see [ExpandVolumes].
	replicas *int32
	// reads are what the inputs of the child have read.
	reads []readVersion
	// rewritten is the fingerprint of the rewritten differences of the last write. The next write is expected to have
	// the same.
	rewritten string
}

func (d *desired) String() string { return d.kind.describe(d.object) }

// held returns the error of an object that has to wait. It says for what.
func (d *desired) held(what string) error {
	return &WaitingError{reason: reasonDependencyNotReady, message: fmt.Sprintf("%s %s until %s is ready", d, what, d.hold)}
}

func (d *desired) name() childName { return childName{d.kind, client.ObjectKeyFromObject(d.object)} }

func (d *desired) key() types.NamespacedName { return client.ObjectKeyFromObject(d.object) }

// desire makes an object ready to be compared and sent.
func (a *applier) desire(o *owner, obj client.Object, options *childOptions) (*desired, error) {
	k, err := a.kinds.of(obj, o.client.Scheme())
	if err != nil {
		return nil, err
	}
	object, full, err := k.normalize(obj, options)
	if err != nil {
		return nil, err
	}
	object, generate := withoutGenerated(o, object, options.generate)
	full, _ = withoutGenerated(o, full, generate)
	encoded, err := k.comparer.AppendJSON(nil, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.describe(object), err)
	}
	return &desired{kind: k, object: object, full: full, sum: sumOf(encoded), owner: o, options: options, generate: generate}, nil
}

// checkValues returns an error for values that the API server would accept, but should not get. If two items of a list
// have the same key, it would then refuse every apply of the object. A huge quantity would keep it computing.
func (d *desired) checkValues() error {
	tree, err := d.tree(record.ByCreate)
	if err != nil {
		return err
	}
	schema := d.kind.comparer.Schema()
	wrong := &field.Error{BadValue: field.OmitValueType{}}
	if path := schema.Duplicate(tree); path != "" {
		const remedy = "another item of the list has this key, by which items are told apart: give each item its own key"
		wrong.Type, wrong.Field, wrong.Detail = field.ErrorTypeDuplicate, path, remedy
	} else if path := schema.HugeQuantity(tree); path != "" {
		const remedy = "the exponent or the length of this quantity is out of all bounds: choose one such as 500m, 2 or 10Gi"
		wrong.Type, wrong.Field, wrong.Detail = field.ErrorTypeInvalid, path, remedy
	} else {
		return nil
	}
	return fmt.Errorf("%s is not written: %w", d, apierrors.NewInvalid(d.kind.gvk.GroupKind(), d.object.GetName(), field.ErrorList{wrong}))
}

// normalize returns the object as it is compared and sent, without and with the fields of [Child.CreateOnly].
func (k *kind) normalize(obj client.Object, options *childOptions) (object, full client.Object, err error) {
	if obj, err = withJSONValues(obj); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", k.describe(obj), err)
	}
	obj = withoutOwnMetadata(obj)
	if options.createOnly == nil {
		obj = withData(obj)
		return obj, obj, nil
	}
	full = withData(obj.DeepCopyObject().(client.Object))
	options.createOnly(obj)
	return withData(obj), full, nil
}

// withJSONValues returns an unstructured object that holds only the types that apimachinery expects in one. Its author
// may have written an int or a []string, and copying those panics. Other objects are returned as they are.
func withJSONValues(obj client.Object) (client.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || holdsJSONValues(u.Object) {
		return obj, nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return obj, fmt.Errorf("it has no JSON form: %w", err)
	}
	converted := &unstructured.Unstructured{}
	return converted, json.Unmarshal(data, &converted.Object)
}

func holdsJSONValues(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return true
	case map[string]any:
		for _, e := range v {
			if !holdsJSONValues(e) {
				return false
			}
		}
		return true
	case []any:
		for _, e := range v {
			if !holdsJSONValues(e) {
				return false
			}
		}
		return true
	}
	return false
}

// withData converts a Secret's stringData to data, as the API server does: a live Secret has no stringData to compare
// with. A key in both has its value from stringData.
func withData(obj client.Object) client.Object {
	switch obj := obj.(type) {
	case *corev1.Secret:
		return typedWithData(obj)
	case *unstructured.Unstructured:
		return untypedWithData(obj)
	}
	return obj
}

func typedWithData(secret *corev1.Secret) client.Object {
	if len(secret.StringData) == 0 {
		return secret
	}
	converted := *secret
	converted.StringData = nil
	converted.Data = maps.Clone(secret.Data)
	if converted.Data == nil {
		converted.Data = make(map[string][]byte, len(secret.StringData))
	}
	for k, v := range secret.StringData {
		converted.Data[k] = []byte(v)
	}
	return &converted
}

func untypedWithData(obj *unstructured.Unstructured) client.Object {
	texts, ok := obj.Object["stringData"].(map[string]any)
	if !ok || obj.GetAPIVersion() != "v1" || obj.GetKind() != "Secret" {
		return obj
	}
	converted := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	delete(converted.Object, "stringData")
	data, _ := obj.Object["data"].(map[string]any)
	if data = maps.Clone(data); data == nil {
		data = make(map[string]any, len(texts))
	}
	for k, v := range texts {
		if text, ok := v.(string); ok {
			data[k] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	converted.Object["data"] = data
	return converted
}

func isNil(obj client.Object) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
