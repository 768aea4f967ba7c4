package plan

import (
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/record"
)

// ToSend returns a copy of the object that also has the owner reference, or the annotations that name the owner, and the other
// annotations of this library.
func ToSend(d *owned.Desired, method record.Method) client.Object {
	obj := d.Object
	if method == record.ByCreate {
		obj = d.Full
	}
	obj = obj.DeepCopyObject().(client.Object)
	withCopiedFields(obj)
	for key, value := range d.Generated {
		if len(feature.SecretValue(obj, key)) == 0 {
			feature.SetSecretValue(obj, key, value)
		}
	}
	feature.AddRunFields(d, obj, method)
	if method == record.ByCreate && d.Replicas != nil {
		feature.SetReplicas(obj, *d.Replicas)
	}
	if method == record.ByCreate {
		owned.WithSortedJSON(obj)
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[record.Applied] = lastApplied(d, method)
	if d.Owner.Set != "" {
		annotations[record.Set] = d.Owner.Set
	}
	annotations[record.OwnerName] = d.Owner.ObjectName().String()
	if d.Owner.BuiltFrom != nil {
		if hash := d.Owner.BuiltFrom.Hash(d.Reads); hash != "" {
			annotations[record.BuiltFrom] = hash
		}
	}
	if d.Order > 0 || d.ResetsOrder {
		annotations[record.Order] = strconv.Itoa(d.Order)
	}
	obj.SetAnnotations(annotations)
	d.Bind(obj)
	return obj
}

// lastApplied returns the value of the annotation opblocks.dev/applied for a write of the object.
func lastApplied(d *owned.Desired, method record.Method) string {
	return record.LastApplied{
		Method: method, Hash: string(d.Sum[:]), Rewritten: d.Rewritten, Replicas: d.Replicas != nil || DesiresReplicas(d.Object),
	}.String()
}

// ToPost returns the object that a POST sends. It leaves out what an apply leaves out too: nulls, and fields such as the UID that a builder
// has copied from a live object. Otherwise the API server would store them, and the first apply would remove a stored null.
func ToPost(d *owned.Desired) (client.Object, error) {
	obj := ToSend(d, record.ByCreate)
	if _, untyped := obj.(*unstructured.Unstructured); untyped {
		tree, err := Tree(d, record.ByCreate)
		return &unstructured.Unstructured{Object: tree}, err
	}
	d.Kind.Comparer.DropServerOwned(obj)
	return obj, nil
}

// IsUntypable reports whether the API server refused an apply because it does not fit the schema, or because two list items have the same
// key.
func IsUntypable(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

// CheckValues returns an error for values that the API server would accept, but that must not be sent: two list items with the same key,
// because the API server would then refuse every apply of the object, and huge quantities, because the API server would compute for very
// long.
func CheckValues(d *owned.Desired) error {
	tree, err := Tree(d, record.ByCreate)
	if err != nil {
		return err
	}
	schema := d.Kind.Comparer.Schema()
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
	return fmt.Errorf("%s is not written: %w", d, apierrors.NewInvalid(d.Kind.GVK.GroupKind(), d.Object.GetName(), field.ErrorList{wrong}))
}
