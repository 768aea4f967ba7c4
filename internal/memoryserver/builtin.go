package memoryserver

import (
	"fmt"
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
)

// builtIn are the rules of a built-in kind, whose objects the server holds in their Go types.
type builtIn struct {
	gvk        schema.GroupVersionKind
	plural     string
	like       client.Object // of the Go type
	namespaced bool
	counted    bool // has a generation, which counts changes of the spec
	hasStatus  bool

	behaviour
}

var _ rules = (*builtIn)(nil)

func (b *builtIn) empty() client.Object {
	object := reflect.New(reflect.TypeOf(b.like).Elem()).Interface().(client.Object)
	object.GetObjectKind().SetGroupVersionKind(b.gvk)
	return object
}

func (b *builtIn) decode(content []byte, strict bool) (client.Object, error) {
	object := b.empty()
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

func (b *builtIn) fromMap(content map[string]any, strict bool) (client.Object, error) {
	object := b.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, object, strict); err != nil {
		return nil, err
	}
	return object, nil
}

// message is the wire format of the built-in types. What goes through it loses the difference
// between empty and absent, and fractions of a second, as on the way to a real server.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func (b *builtIn) normalized(object client.Object) (client.Object, error) {
	wire, err := object.(message).Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", b.gvk.Kind, err)
	}
	normal := b.empty()
	if err := normal.(message).Unmarshal(wire); err != nil {
		return nil, fmt.Errorf("decode %s: %w", b.gvk.Kind, err)
	}
	return normal, nil
}

func (b *builtIn) encode(object client.Object) ([]byte, error) { return utiljson.Marshal(object) }

func (b *builtIn) assign(t *table, made, live client.Object) error {
	if b.behaviour.assign == nil {
		return nil
	}
	return b.behaviour.assign(t, made, live)
}

func (b *builtIn) grace(live client.Object, requested *int64) int64 {
	if b.behaviour.grace == nil {
		return 0
	}
	return b.behaviour.grace(live, requested)
}

func (b *builtIn) holds(made client.Object) bool {
	if b.behaviour.holds == nil {
		return false
	}
	b.behaviour.holds(made)
	return true
}

func (b *builtIn) setDefaults(object client.Object) {
	if b.defaults != nil {
		b.defaults(object)
	}
}

func (b *builtIn) prepareCreate(made client.Object) {
	if b.hasStatus {
		part(made, "Status").SetZero()
	}
	if b.counted {
		made.SetGeneration(1)
	}
	if b.create != nil {
		b.create(made)
	}
}

func (b *builtIn) prepareUpdate(made, live client.Object) {
	if b.hasStatus {
		part(made, "Status").Set(part(live, "Status"))
	}
	if b.update != nil {
		b.update(made, live)
	}
	if b.counted && b.changed(made, live) {
		made.SetGeneration(live.GetGeneration() + 1)
	}
}

func (b *builtIn) changed(made, live client.Object) bool {
	if spec := part(made, "Spec"); spec.IsValid() &&
		!equality.Semantic.DeepEqual(spec.Addr().Interface(), part(live, "Spec").Addr().Interface()) {
		return true
	}
	return b.counts != nil && b.counts(made, live)
}

func (b *builtIn) prepareStatus(made, live client.Object) {
	if spec := part(made, "Spec"); spec.IsValid() {
		spec.Set(part(live, "Spec"))
	}
	if b.behaviour.status != nil {
		b.behaviour.status(made, live)
	}
}

// part is a field of an object's struct, invalid if there is none.
func part(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func (b *builtIn) validate(made client.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(made, b.namespaced, b.validName, field.NewPath("metadata"))
	errs = append(errs, b.checkFinalizers(made)...)
	if b.check != nil {
		errs = append(errs, b.check(made)...)
	}
	return errs
}

func (b *builtIn) validateUpdate(made, live client.Object) (errs field.ErrorList) {
	errs = b.checkFinalizers(made)
	if b.check != nil {
		errs = append(errs, b.check(made)...)
	}
	if b.compare != nil {
		errs = append(errs, b.compare(made, live)...)
	}
	return errs
}

func (b *builtIn) validateStatus(made, _ client.Object) field.ErrorList {
	errs := b.checkFinalizers(made)
	if b.checkStatus != nil {
		errs = append(errs, b.checkStatus(made)...)
	}
	return errs
}

// checkFinalizers wants finalizers of built-in kinds to have a domain. On custom resources they need
// none.
func (b *builtIn) checkFinalizers(made client.Object) (errs field.ErrorList) {
	if b.anyFinalizer {
		return nil
	}
	for i, finalizer := range made.GetFinalizers() {
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

func (b *builtIn) settle(made client.Object, _ bool) (read, stored client.Object, err error) {
	if stored, err = b.normalized(made); err != nil || b.read == nil {
		return stored, stored, err
	}
	read = stored.DeepCopyObject().(client.Object)
	b.read(read)
	return read, stored, nil
}

func (b *builtIn) equal(x, y client.Object) bool { return equality.Semantic.DeepEqual(x, y) }
