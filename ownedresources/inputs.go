package ownedresources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/references"
)

// Input is a value of type S that a child of a T is built from, beside the T itself. Make one with [From], [VersionHash],
// [ContentHash], [Child.Live], [Child.LiveEach] or [Combine], and use it in [BuildFrom] and [BuildEachFrom], for any number of children of
// one set.
type Input[T client.Object, S any] struct{ *input }

// input is an Input without its types.
type input struct {
	read       func(r *reconciliation) (any, []readVersion, error)
	references []references.Reference
	live       []*child // the children whose live objects are read
	parts      []*input // the inputs that it is made of
	mistake    error
}

// AnyInput is an [Input] of whatever type.
type AnyInput[T client.Object] interface {
	isInputOf(owner T)
	engine() *input
}

func (in *Input[T, S]) isInputOf(T) {}

// engine returns the input without its types, and one with a mistake if it is nil.
func (in *Input[T, S]) engine() *input {
	if in == nil || in.input == nil {
		return &input{mistake: errors.New("its input is nil")}
	}
	return in.input
}

func inputs[T client.Object](in AnyInput[T]) []*input { return []*input{in.engine()} }

// readsIn returns what the input has read in a reconcile, and the versions of the live children that it is made of.
func (in *input) readsIn(r *reconciliation) []readVersion {
	reads := slices.Clip(r.inputs[in].reads)
	for _, part := range in.parts {
		reads = append(reads, part.readsIn(r)...)
	}
	for _, child := range in.live {
		state := &r.states[r.set.order.index[child]]
		for _, d := range r.objects[state.from:state.to] {
			if d.live != nil {
				reads = append(reads, readVersion{d.kind.gvk, client.ObjectKeyFromObject(d.live), versionOf(d.live)})
			}
		}
	}
	return reads
}

// inputResult is what was read for an input, and in which versions.
type inputResult struct {
	value any
	reads []readVersion
	err   error
}

// value returns the value that read returns. If an object is missing and the child that is built has the option
// [Child.KeepWhileMissing], it returns no error.
func (in *Input[T, S]) value(r *reconciliation) (S, error) {
	read, err := in.readOnce(r)
	value, _ := read.(S)
	return value, r.inputError(err)
}

// readOnce reads the input, once in a reconcile.
func (in *input) readOnce(r *reconciliation) (any, error) {
	result, known := r.inputs[in]
	if !known {
		value, reads, err := in.read(r)
		result = inputResult{value, reads, err}
		if len(in.live) == 0 && (len(in.parts) == 0 || err == nil) { // a live object may be applied in the same reconcile
			if r.inputs == nil {
				r.inputs = map[*input]inputResult{}
			}
			r.inputs[in] = result
		}
	}
	return result.value, result.err
}

// inputError returns the error of an input as an error of the child that is being built. It returns nil if an object is
// missing, but the child is applied all the same.
func (r *reconciliation) inputError(err error) error {
	child := r.set.children[r.building]
	wait, waits := errors.AsType[*WaitingError](err)
	switch {
	case err == nil:
		return nil
	case waits:
		return &WaitingError{reason: wait.reason, message: child.describe() + ": " + wait.message, after: wait.after}
	case !isMissing(err):
		return fmt.Errorf("input of %s: %w", child.describe(), err)
	}
	missing := &WaitingError{reason: reasonReferenceNotFound, message: child.describe() + ": " + missingText(err)}
	if r.unseen {
		missing.after = maxCacheDelay // no event comes if the cache leaves the object out
	}
	if child.options.keepWhileMissing == nil {
		return missing
	}
	r.states[r.building].missing = missing
	return nil
}

// Read declares which objects of a kind an input reads. Make one with [Reads] or [ReadsCached].
type Read[T client.Object] struct{ reference references.Reference }

// Reads declares that an input reads objects of a kind, such as &corev1.ConfigMap{}, by name. names returns their names
// for a T; an empty namespace is the namespace of the T. It must only read, and always return the same names for the
// same T.
//
// A change of such an object, its deletion and its re-creation trigger a reconcile of the T. The cache holds only their
// metadata. A whole object is read from the API server, with one request, after a restart and whenever the object or
// the owner's spec, labels or annotations have changed. The metadata alone (*metav1.PartialObjectMetadata) is read from
// the cache. If the set builds objects of the kind, the cache holds whole ones anyway, and they are read there. So is
// their metadata. In either case, what is read is never older than the event that triggered the reconcile.
//
// The operator needs the verbs get, list and watch on the kind; list and watch if only metadata is read.
func Reads[T client.Object](obj client.Object, names func(T) []types.NamespacedName) Read[T] {
	return Read[T]{references.New(false, obj, names)}
}

// ReadsCached is [Reads] for objects that are small or that are cached anyway, and that contain no secrets. The cache holds
// the whole objects, and they are read there.
func ReadsCached[T client.Object](obj client.Object, names func(T) []types.NamespacedName) Read[T] {
	return Read[T]{references.New(true, obj, names)}
}

// From returns an input that the function reads. Its reader reads the objects that reads declare, and refuses all
// others, so that a change of whatever was read triggers a reconcile. The function may depend only on the owner's spec,
// labels and annotations and on what it reads: not on the owner's status, the time, or a global. It must not change
// what it reads. The owner is a copy, and the value may keep parts of it. Nobody may change the value: it is used again
// while the owner and the objects that were read have the same versions.
//
// If the function returns an error of the API server that something is not found, the children that are built from the
// input stay as they are, and the error of [ChildSet.Reconcile] is a [*WaitingError] with the reason ReferenceNotFound.
// With the option [Child.KeepWhileMissing] they are built with the value that the function returned beside its error. Any
// other error is returned with the name of the child. It does not hold up the other children. An object that exists for
// more than a minute and that the cache does not show, because of its selector or namespaces, is a [*NotCachedError].
func From[T client.Object, S any](read func(ctx context.Context, r client.Reader, owner T) (S, error), reads ...Read[T]) *Input[T, S] {
	in := &input{}
	for _, one := range reads {
		in.references = append(in.references, one.reference)
	}
	in.read = func(r *reconciliation) (any, []readVersion, error) {
		if known, ok := r.remembered(in); ok {
			return known.value, known.reads, nil
		}
		owner, reader := r.digestOwner(), r.newInputReader(in.references)
		value, err := read(r.ctx, reader, reader.owner.(T))
		r.remember(in, owner, reader, value, err)
		return value, reader.reads, err
	}
	return &Input[T, S]{in}
}

// ownerOfInputs returns a copy of the owner for the functions of inputs. Their values may keep parts of it, and are
// remembered. The owner itself does not stay the same: a step may change it in memory, and the memory of an owner that
// the cache shows is used again.
func (r *reconciliation) ownerOfInputs() client.Object {
	if r.copied == nil {
		r.copied = r.object.DeepCopyObject().(client.Object)
	}
	return r.copied
}

// VersionHash returns an input whose value is a hash of the [Versions] of all objects that reads declare: their
// names, UIDs and resource versions. In an annotation of a pod template it rolls the pods when one of the objects
// changes. It reads metadata from the cache, so it sends no request and sees no content. If nothing is declared for an
// owner the value is empty. If objects are missing, the value is the hash of the others: see [Child.KeepWhileMissing].
//
// The resource version changes with every write that changes anything of the object: its content, a label, an
// annotation, a finalizer, an owner reference, a managed field, the deletionTimestamp of a deletion that a finalizer
// holds up. So the value changes too, and the pods roll, although what they read may be the same. It also changes when
// an object is deleted and created again with the same content. [ContentHash] changes with the content alone.
func VersionHash[T client.Object](reads ...Read[T]) *Input[T, string] {
	return From(func(ctx context.Context, r client.Reader, owner T) (string, error) {
		var used []metav1.Object
		var missing missingError
		for _, one := range reads {
			for _, name := range one.reference.Names(owner) {
				obj := &metav1.PartialObjectMetadata{}
				kind, err := apiutil.GVKForObject(one.reference.Object, r.(*inputReader).scheme)
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
		hash, hashErr := valueHash(Versions(used...))
		return hash, errors.Join(hashErr, err)
	}, reads...)
}

// Live returns an input whose value is the live object of the child, for another child of the same set. The child that is built
// from it comes after this one, and waits until the object exists. Use [Child.After] as well if it has to be ready. The object
// may be the cache's own: do not change it. The value is nil if this child is built without an object, or is left out
// ([IfServed]). The value of a child of [BuildApply] is an *unstructured.Unstructured.
//
//	ownedresources.BuildFrom(service.Live(), ingress)
func (c *Child[T, C]) Live() *Input[T, C] {
	in := c.liveInput()
	in.read = func(r *reconciliation) (any, []readVersion, error) {
		objs, err := liveObjects[C](r, c.child)
		switch {
		case err != nil || len(objs) == 0:
			return nil, nil, err
		case len(objs) > 1:
			return nil, nil, fmt.Errorf("%s has %d objects: use LiveEach", c.describe(), len(objs))
		}
		return objs[0], nil, nil
	}
	return &Input[T, C]{in}
}

// LiveEach is [Child.Live] for a child that has any number of objects. It waits until all of them exist. The value is empty if the
// child is built without objects.
func (c *Child[T, C]) LiveEach() *Input[T, []C] {
	in := c.liveInput()
	in.read = func(r *reconciliation) (any, []readVersion, error) {
		objs, err := liveObjects[C](r, c.child)
		return objs, nil, err
	}
	return &Input[T, []C]{in}
}

// liveInput returns an input of the live objects of a child, without its read.
func (c *Child[T, C]) liveInput() *input {
	if c == nil {
		return &input{mistake: errors.New("the child whose live object is an input is nil")}
	}
	return &input{live: []*child{c.child}}
}

// Values are the values of the inputs of [Combine]: see [Input.Value].
type Values[T client.Object] struct{ values map[*input]any }

// Value returns the value of the input in a function of [Combine]. It panics if Combine was not given the input.
func (in *Input[T, S]) Value(v *Values[T]) S {
	value, known := v.values[in.input]
	if !known {
		panic("Combine reads an input that it was not given: add it to the arguments after the function")
	}
	typed, _ := value.(S)
	return typed
}

// Combine returns an input whose value the function makes of the values of others, for a child that is built from all
// of them, such as a workload from settings and from a live Secret:
//
//	password := secret.Live()
//	ownedresources.Combine(func(v *ownedresources.Values[*App]) Config {
//		return Config{Settings: settings.Value(v), Password: password.Value(v)}
//	}, settings, password)
//
// The function must depend on these values alone. If an object is missing for one of the inputs, it is missing for the
// child: see [From] and [Child.KeepWhileMissing].
func Combine[T client.Object, S any](f func(v *Values[T]) S, inputs ...AnyInput[T]) *Input[T, S] {
	in := &input{}
	for i, one := range inputs {
		if isNilInput(one) {
			return &Input[T, S]{&input{mistake: fmt.Errorf("input %d of Combine is nil", i+1)}}
		}
		part := one.engine()
		in.parts, in.references, in.live = append(in.parts, part), append(in.references, part.references...), append(in.live, part.live...)
		in.mistake = cmp.Or(in.mistake, part.mistake)
	}
	in.read = func(r *reconciliation) (value any, _ []readVersion, err error) {
		v := &Values[T]{values: make(map[*input]any, len(in.parts))}
		for _, part := range in.parts {
			read, failure := part.readOnce(r)
			v.values[part] = read
			if err == nil || isMissing(err) && failure != nil {
				err = failure // any other failure keeps the child from being built, also one with KeepWhileMissing
			}
		}
		if err == nil || isMissing(err) && r.set.children[r.building].options.keepWhileMissing != nil {
			value = f(v) // values that are missing are zero
		}
		return value, nil, err
	}
	return &Input[T, S]{in}
}

func isNilInput(in any) bool {
	v := reflect.ValueOf(in)
	return in == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

func liveObjects[P client.Object](r *reconciliation, child *child) (objs []P, err error) {
	state := &r.states[r.set.order.index[child]]
	if state.leftOut() {
		return nil, nil
	}
	for _, d := range r.objects[state.from:state.to] {
		if d.live == nil {
			return nil, waitForDependency(d.kind.describe(d.object))
		}
		live, err := d.likeDesired(d.live)
		if err != nil {
			return nil, err
		}
		objs = append(objs, live.(P))
	}
	if !state.built {
		return nil, waitForDependency(child.describe())
	}
	return objs, nil
}

func waitForDependency(on string) *WaitingError {
	return &WaitingError{reason: reasonDependencyNotReady, message: "it waits for " + on}
}

// missingError names objects that do not exist.
type missingError []string

func (m missingError) Error() string { return strings.Join(m, ", ") + ": not found" }

func isMissing(err error) bool {
	_, ok := errors.AsType[missingError](err)
	return ok || apierrors.IsNotFound(err)
}

// missingText names what is missing, without what the API server says around it.
func missingText(err error) string {
	if missing, ok := errors.AsType[missingError](err); ok {
		return missing.Error()
	}
	return err.Error()
}
