package owned

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// Declared is an object as the caller of [ownedresources.Apply] passed it, or as the function of a [ownedresources.Child] returned it.
type Declared struct {
	Kind    *Kind
	Object  client.Object
	Options *Options
	Binding Binding
	Builder string        // the value of the annotation opblocks.dev/builder; empty for none
	Order   int           // the rank of its child: objects with a higher rank are deleted first, see [ownedresources.Child.After]
	Hold    string        // the names of the objects that have to become ready before this one may be created or changed; empty for none
	Err     error         // what is wrong with the object; nil for nothing
	Live    client.Object // the live object after the apply; nil if it does not exist
	Reads   []ReadVersion // the versions of the objects that the inputs of the child have read
	Content string        // for a Job that runs once, the value of the annotation opblocks.dev/content
}

// ObjectName returns the kind and the name of the object.
func (d *Declared) ObjectName() record.Name {
	return record.NameOf(d.Kind.GVK.GroupKind(), d.Object)
}

// IsNamed reports whether an object has the kind and the name of the declared object.
func (d *Declared) IsNamed(gvk schema.GroupVersionKind, obj client.Object) bool {
	return d.Object.GetName() == obj.GetName() && d.Object.GetNamespace() == obj.GetNamespace() &&
		d.Kind.GVK.GroupKind() == gvk.GroupKind()
}

// Desired is a declared object after it was normalized, so that it can be compared with the live object and sent.
type Desired struct {
	Kind    *Kind
	Object  client.Object
	Full    client.Object // Object with the fields of [ownedresources.Child.CreateOnly]
	Sum     Sum           // the hash of Object
	Owner   *Owner
	Options *Options
	Binding Binding
	Builder string    // the value of the annotation opblocks.dev/builder; empty for none
	Former  types.UID // if the object is adopted from a deleted owner, the UID of that owner
	Order   int
	Hold    string // see Declared.Hold
	// ResetsOrder makes a write send order 0. Without it, an order that somebody else has set in the live object would stay.
	ResetsOrder bool
	// Generate are the keys of [ownedresources.Child.Generate] for which the object has no value of its own. Generated has their values in
	// the next write. Some of these values may be kept from the live object. GeneratedFrom is the resource version in which that object was
	// read.
	Generate      []GeneratedKey
	Generated     map[string][]byte
	GeneratedFrom string
	// Replicas is the number of replicas of the StatefulSet that the object replaces, see [ownedresources.Child.ExpandVolumes].
	Replicas *int32
	// Reads are the versions of the objects that the inputs of the child have read.
	Reads []ReadVersion
	// Rewritten is a hash of the differences between what the last write sent and what the API server stored. The next write is expected to
	// differ in the same way, so it carries this hash in the annotation opblocks.dev/applied.
	Rewritten string
	// Admitted are the immutable fields that admission has set, and that a write sends with their live values. It is nil if there are none.
	Admitted *Admitted
	// Trial is the answer to the dry run of a creation. It is kept because several decisions use it. It is nil if no dry run was sent.
	Trial *Trial
}

// Trial is what the API server would make of an object if it was created now, or why it would not create it.
type Trial struct {
	Object client.Object // nil if there is an error
	Err    error
}

func (d *Desired) String() string { return d.Kind.Describe(d.Object) }

// Held returns the error of an object that has to wait until other objects are ready. what names the action that waits, such as "is not
// created".
func (d *Desired) Held(what string) error {
	return NewWaiting(ReasonDependencyNotReady, 0, fmt.Sprintf("%s %s until %s is ready", d, what, d.Hold))
}

// Name returns the kind and the name of the child, under which the memory of the process keeps it.
func (d *Desired) Name() ChildName { return ChildName{d.Kind, client.ObjectKeyFromObject(d.Object)} }

// Key returns the namespace and the name of the object.
func (d *Desired) Key() types.NamespacedName { return client.ObjectKeyFromObject(d.Object) }

// Normalize returns two copies of the object, ready to be compared and sent. object lacks the fields of [ownedresources.Child.CreateOnly],
// and full has them.
func (k *Kind) Normalize(obj client.Object, options *Options) (object, full client.Object, err error) {
	if obj, err = withJSONValues(obj); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", k.Describe(obj), err)
	}
	obj = withoutOwnMetadata(obj)
	if options.CreateOnly == nil {
		obj = WithData(obj)
		return obj, obj, nil
	}
	full = WithData(obj.DeepCopyObject().(client.Object))
	options.CreateOnly(obj)
	return WithData(obj), full, nil
}

// withJSONValues returns an unstructured object that holds only the types that apimachinery expects in an unstructured object. Its author
// may have written an int or a []string, and copying such a value panics. Other objects are returned unchanged.
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

// WithData converts a Secret's stringData to data, as the API server does: a live Secret has no stringData to compare with. If a key is
// in both, the value from stringData counts.
func WithData(obj client.Object) client.Object {
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

// IsNil reports whether an object is missing: nil, or a nil pointer.
func IsNil(obj client.Object) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// ChildName is the kind and the name of a child.
type ChildName struct {
	kind *Kind
	name types.NamespacedName
}
