package builtin

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// strategy implements [kind.Strategy] for a built-in kind: it decodes, defaults and validates its objects. The server holds them in their
// Go type.
type strategy struct {
	gvk           schema.GroupVersionKind
	plural        string
	prototype     client.Object // any object of the Go type
	namespaced    bool
	hasGeneration bool // the generation counts changes of the spec
	hasStatus     bool

	behaviour
}

var (
	_ kind.Strategy = (*strategy)(nil)
	_ kind.Scaler   = (*strategy)(nil)
)

func (b *strategy) New() client.Object {
	object := reflect.New(reflect.TypeOf(b.prototype).Elem()).Interface().(client.Object)
	object.GetObjectKind().SetGroupVersionKind(b.gvk)
	return object
}

func (b *strategy) Decode(content []byte, strict bool) (client.Object, error) {
	object := b.New()
	if strict {
		unknown, err := json.UnmarshalStrict(content, object)
		if err != nil {
			return nil, err
		}
		if len(unknown) > 0 {
			return nil, runtime.NewStrictDecodingError(unknown)
		}
	} else if err := json.UnmarshalCaseSensitivePreserveInts(content, object); err != nil {
		return nil, err
	}
	return object, nil
}

func (b *strategy) FromMap(content map[string]any, strict bool) (client.Object, error) {
	object := b.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, object, strict); err != nil {
		return nil, err
	}
	return object, nil
}

// FromObject encodes the object as protobuf and decodes it, as on the way to a real server. So the difference between empty and absent is
// lost, and times lose fractions of a second.
func (b *strategy) FromObject(object client.Object) (client.Object, bool, error) {
	if reflect.TypeOf(object) != reflect.TypeOf(b.prototype) {
		return nil, false, nil
	}
	decoded, err := b.normalized(object)
	return decoded, true, err
}

// message is implemented by the built-in types, which protobuf can encode.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func (b *strategy) normalized(object client.Object) (client.Object, error) {
	wire, err := object.(message).Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", b.gvk.Kind, err)
	}
	normal := b.New()
	if err := normal.(message).Unmarshal(wire); err != nil {
		return nil, fmt.Errorf("decode %s: %w", b.gvk.Kind, err)
	}
	return normal, nil
}

func (b *strategy) Encode(object client.Object) ([]byte, error) {
	if b.inJSON != nil {
		object = b.inJSON(object)
	}
	return utiljson.Marshal(object)
}

func (b *strategy) Allocate(k *kind.Kind, others iter.Seq[client.Object], obj, live client.Object) error {
	if b.allocate == nil {
		return nil
	}
	return b.allocate(k, others, obj, live)
}

func (b *strategy) GracePeriod(live client.Object, requested *int64) int64 {
	if b.gracePeriod == nil {
		return 0
	}
	return b.gracePeriod(live, requested)
}

func (b *strategy) HoldDeletion(obj client.Object) bool {
	if b.holdDeletion == nil {
		return false
	}
	b.holdDeletion(obj)
	return true
}

func (b *strategy) SetDefaults(object client.Object) {
	if b.setDefaults != nil {
		b.setDefaults(object)
	}
}

func (b *strategy) PrepareForCreate(obj client.Object) {
	if b.hasStatus {
		fieldOf(obj, "Status").SetZero()
	}
	if b.hasGeneration {
		obj.SetGeneration(1)
	}
	if b.prepareForCreate != nil {
		b.prepareForCreate(obj)
	}
}

func (b *strategy) PrepareForUpdate(obj, live client.Object) {
	if b.hasStatus {
		fieldOf(obj, "Status").Set(fieldOf(live, "Status"))
	}
	if b.prepareForUpdate != nil {
		b.prepareForUpdate(obj, live)
	}
	if b.hasGeneration && b.specChanged(obj, live) {
		obj.SetGeneration(live.GetGeneration() + 1)
	}
}

func (b *strategy) specChanged(obj, live client.Object) bool {
	if spec := fieldOf(obj, "Spec"); spec.IsValid() &&
		!equality.Semantic.DeepEqual(spec.Addr().Interface(), fieldOf(live, "Spec").Addr().Interface()) {
		return true
	}
	return b.changesGeneration != nil && b.changesGeneration(obj, live)
}

func (b *strategy) PrepareForStatusUpdate(obj, live client.Object) {
	if spec := fieldOf(obj, "Spec"); spec.IsValid() {
		spec.Set(fieldOf(live, "Spec"))
	}
	if b.prepareForStatusUpdate != nil {
		b.prepareForStatusUpdate(obj, live)
	}
}

// fieldOf returns a field of an object's struct. If the struct does not have it, fieldOf returns an invalid value.
func fieldOf(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func (b *strategy) Validate(obj client.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(obj, b.namespaced, b.validateName, field.NewPath("metadata"))
	errs = append(errs, b.validateFinalizers(obj)...)
	if b.validate != nil {
		errs = append(errs, b.validate(obj)...)
	}
	return errs
}

func (b *strategy) ValidateUpdate(obj, live client.Object) (errs field.ErrorList) {
	errs = b.validateFinalizers(obj)
	if b.validate != nil {
		errs = append(errs, b.validate(obj)...)
	}
	if b.validateUpdate != nil {
		errs = append(errs, b.validateUpdate(obj, live)...)
	}
	return errs
}

func (b *strategy) ValidateStatus(obj, _ client.Object) field.ErrorList {
	errs := b.validateFinalizers(obj)
	if b.validateStatus != nil {
		errs = append(errs, b.validateStatus(obj)...)
	}
	return errs
}

// validateFinalizers requires a domain in the finalizers of built-in kinds. Custom resources need no domain.
func (b *strategy) validateFinalizers(obj client.Object) (errs field.ErrorList) {
	if b.anyFinalizer {
		return nil
	}
	for i, finalizer := range obj.GetFinalizers() {
		switch finalizer {
		case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes):
			continue
		}
		if !strings.Contains(finalizer, "/") {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), finalizer,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

func (b *strategy) Normalize(obj client.Object, _ bool) (read, stored client.Object, err error) {
	if stored, err = b.normalized(obj); err != nil || b.defaultOnRead == nil {
		return stored, stored, err
	}
	read = stored.DeepCopyObject().(client.Object)
	b.defaultOnRead(read)
	return read, stored, nil
}

func (b *strategy) Equal(x, y client.Object) bool { return equality.Semantic.DeepEqual(x, y) }
