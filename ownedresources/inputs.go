package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/references"
)

// Input is a value of type S from which a child is built, beside the owner of type T. Make one with [From], [VersionHash],
// [ContentHash], [Child.Live], [Child.LiveEach] or [Combine], and use it in [BuildFrom] and [BuildEachFrom], for any number of
// children of one set.
type Input[T client.Object, S any] struct{ input *set.Input }

// AnyInput is an [Input] whose value may have any type.
type AnyInput[T client.Object] interface {
	isInputOf(owner T)
	engine() *set.Input
}

func (in *Input[T, S]) isInputOf(T) {}

// value returns the value of the input for the child that is being built.
func (in *Input[T, S]) value(r *set.Reconciliation) (S, error) {
	read, err := in.input.Value(r)
	value, _ := read.(S)
	return value, err
}

// engine returns the input without its type parameters. For a nil input it returns an input whose use is an error.
func (in *Input[T, S]) engine() *set.Input {
	if in == nil || in.input == nil {
		return &set.Input{Mistake: errors.New("its input is nil")}
	}
	return in.input
}

func inputs[T client.Object](in AnyInput[T]) []*set.Input { return []*set.Input{in.engine()} }

// Read declares which objects of a kind an input reads. Make one with [Reads] or [ReadsCached].
type Read[T client.Object] struct{ reference references.Reference }

// Reads declares that an input reads objects of a kind, such as &corev1.ConfigMap{}, by name. names returns their names for a T; an empty
// namespace is the namespace of the T. The function must not change the T, and must always return the same names for the same T.
//
// A change of such an object, its deletion and its re-creation trigger a reconcile of the T. The cache holds only their metadata. A whole
// object is read from the API server, with one request, after a restart and whenever the object or the owner's spec, labels or annotations
// have changed. If obj is a *metav1.PartialObjectMetadata, only metadata is read, and it is read from the cache. If the set also builds
// objects of the kind, the cache holds whole objects of it, and both whole objects and metadata are read from there. In either case, what
// is read is never older than the event that triggered the reconcile.
//
// The operator needs the verbs get, list and watch on the kind; list and watch if only metadata is read.
func Reads[T client.Object](obj client.Object, names func(T) []types.NamespacedName) Read[T] {
	return Read[T]{references.New(false, obj, names)}
}

// ReadsCached is [Reads] for objects that contain no secrets, and that are small or are cached anyway. The cache holds the
// whole objects, and the input reads them from the cache.
func ReadsCached[T client.Object](obj client.Object, names func(T) []types.NamespacedName) Read[T] {
	return Read[T]{references.New(true, obj, names)}
}

// From returns an input whose value is the result of the function read. The function gets a reader for the objects that reads declare. The
// reader refuses all other objects, so a change of any object that was read triggers a reconcile. The function may depend only on the
// owner's spec, labels and annotations and on what it reads: not on the owner's status, the time, or a global. It must not change what it
// reads. The owner that it gets is a copy, so the value may keep parts of it. Nobody may change the value: it is used again while the owner
// and the objects that were read have the same versions.
//
// If the function returns an error of the API server that an object does not exist (apierrors.IsNotFound), the children that are built from
// the input stay as they are, and the error of [ChildSet.Reconcile] is a [*WaitingError] with the reason ReferenceNotFound. With the option
// [Child.KeepWhileMissing] they are built with the value that the function returned beside its error. Any other error is returned with the
// name of the child. It does not hold up the other children. If an object exists for more than a minute and the cache does not contain it,
// because of the cache's selector or namespaces, the error is a [*NotCachedError].
func From[T client.Object, S any](read func(ctx context.Context, r client.Reader, owner T) (S, error), reads ...Read[T]) *Input[T, S] {
	var declared []references.Reference
	for _, one := range reads {
		declared = append(declared, one.reference)
	}
	return &Input[T, S]{set.NewReadInput(declared, func(ctx context.Context, r client.Reader, owner client.Object) (any, error) {
		return read(ctx, r, owner.(T))
	})}
}

// VersionHash returns an input whose value is a hash of the versions of all objects that reads declare: their names, UIDs and
// resource versions. In an annotation of a pod template it replaces the pods when one of the objects changes. It reads metadata
// from the cache, so it sends no request and reads no content. If nothing is declared for an owner the value is empty. If objects
// are missing, the value is the hash of the others: see [Child.KeepAnnotationsWhileMissing].
//
// The resource version changes with every write that changes anything of the object: its content, a label, an annotation, a
// finalizer, an owner reference, a managed field, or the deletionTimestamp of an object that waits for its finalizers. So the
// value changes too, and the pods are replaced, although what they read may be the same. It also changes when an object is
// deleted and created again with the same content. [ContentHash] changes only with the content.
func VersionHash[T client.Object](reads ...Read[T]) *Input[T, string] {
	return From(func(ctx context.Context, r client.Reader, owner T) (string, error) {
		var used []metav1.Object
		var missing set.MissingError
		for _, one := range reads {
			for _, name := range one.reference.Names(owner) {
				obj := &metav1.PartialObjectMetadata{}
				kind, err := apiutil.GVKForObject(one.reference.Object, r.(*set.InputReader).Scheme)
				if err != nil {
					return "", fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", one.reference.Object, err)
				}
				obj.SetGroupVersionKind(kind)
				switch err := r.Get(ctx, name, obj); {
				case apierrors.IsNotFound(err):
					missing = append(missing, kind.Kind+" "+name.Name)
				case err != nil:
					return "", fmt.Errorf("read the metadata of %s %s: %w", kind.Kind, name, err)
				default:
					used = append(used, obj)
				}
			}
		}
		var err error
		if len(missing) > 0 {
			slices.Sort(missing)
			err = missing
		}
		if len(used)+len(missing) == 0 {
			return "", err
		}
		hash, hashErr := valueHash(versionsOf(used...))
		return hash, errors.Join(hashErr, err)
	}, reads...)
}

// Live returns an input for another child of the same set. The value of the input is the live object of c. The other child is created
// after c, and waits until the object of c exists. If c has to be ready first, use [Child.After] as well. The object may be shared with
// the cache: do not change it. The value is nil if c is built without an object, or is left out ([Child.IfServed]). If c is made by
// [BuildApply], the value is an *unstructured.Unstructured.
//
//	ownedresources.BuildFrom(service.Live(), ingress)
func (c *Child[T, C]) Live() *Input[T, C] {
	return &Input[T, C]{set.NewLiveInput(c.engine(), func(live []client.Object) (any, error) {
		switch len(live) {
		case 0:
			return nil, nil
		case 1:
			return live[0], nil
		}
		return nil, fmt.Errorf("%s has %d objects: use LiveEach", c.child.Describe(), len(live))
	})}
}

// LiveEach is [Child.Live] for a child c that has any number of objects. The child that is built from the input waits until all objects of
// c exist. If c is built without objects, the value is empty.
func (c *Child[T, C]) LiveEach() *Input[T, []C] {
	return &Input[T, []C]{set.NewLiveInput(c.engine(), func(live []client.Object) (any, error) {
		var objs []C
		for _, obj := range live {
			objs = append(objs, obj.(C))
		}
		return objs, nil
	})}
}

// Values are the values of the inputs of [Combine]: see [Input.Value].
type Values[T client.Object] struct{ values map[*set.Input]any }

// Value returns the value of the input in a function of [Combine]. If Combine was not given the input, Value panics.
func (in *Input[T, S]) Value(v *Values[T]) S {
	value, known := v.values[in.input]
	if !known {
		panic("Combine reads an input that it was not given: add it to the arguments after the function")
	}
	typed, _ := value.(S)
	return typed
}

// Combine returns an input whose value f computes from the values of other inputs, for a child that is built from all of them, such as a
// workload from settings and from a live Secret:
//
//	password := secret.Live()
//	ownedresources.Combine(func(v *ownedresources.Values[*App]) Config {
//		return Config{Settings: settings.Value(v), Password: password.Value(v)}
//	}, settings, password)
//
// The function must depend only on these values. If an object that one of the inputs reads is missing, the child is treated as if its
// own input read it: see [From] and [Child.KeepWhileMissing].
func Combine[T client.Object, S any](f func(v *Values[T]) S, inputs ...AnyInput[T]) *Input[T, S] {
	var parts []*set.Input
	for i, one := range inputs {
		if isNilInput(one) {
			return &Input[T, S]{&set.Input{Mistake: fmt.Errorf("input %d of Combine is nil", i+1)}}
		}
		parts = append(parts, one.engine())
	}
	return &Input[T, S]{set.NewCombinedInput(parts, func(values map[*set.Input]any) (any, error) { return f(&Values[T]{values}), nil })}
}

func isNilInput(in any) bool {
	v := reflect.ValueOf(in)
	return in == nil || v.Kind() == reflect.Pointer && v.IsNil()
}
