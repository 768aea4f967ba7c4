package ownedresources

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/references"
)

// Input is a value of type S that a child of a T is built from, beside the T itself. Make one with [From], [VersionHash],
// [Live], [LiveEach] or [Both], and use it in [BuildFrom] and [BuildEachFrom], for any number of children of one set.
//
// Values must be comparable by reflect.DeepEqual: S must not contain functions or channels.
type Input[T client.Object, S any] struct {
	read       func(r *reconciliation[T]) (S, error)
	references []references.Reference
	live       []*Child[T] // the children whose live objects are read
	mistake    error
	// isPure reports whether the value that is remembered is the one that would be read now. It is nil if none is remembered.
	isPure func(r *reconciliation[T]) bool
}

// anyInput is an input of whatever type.
type anyInput[T client.Object] interface {
	liveChildren() []*Child[T]
	referenceList() []references.Reference
	check() error
	readAny(r *reconciliation[T]) (any, error)
	pure(r *reconciliation[T]) bool
}

func (in *Input[T, S]) liveChildren() []*Child[T]             { return in.live }
func (in *Input[T, S]) referenceList() []references.Reference { return in.references }
func (in *Input[T, S]) check() error                          { return in.mistake }

func (in *Input[T, S]) readAny(r *reconciliation[T]) (any, error) { return in.readOnce(r) }

func (in *Input[T, S]) pure(r *reconciliation[T]) bool { return in.isPure == nil || in.isPure(r) }

// inputResult is what was read for an input.
type inputResult struct {
	value any
	err   error
}

// value returns what read returns. If an object is missing and the child that is built is [KeepWhileMissing], it returns no
// error.
func (in *Input[T, S]) value(r *reconciliation[T]) (S, error) {
	value, err := in.readOnce(r)
	return value, r.inputError(err)
}

// readOnce reads the input, once in a reconcile.
func (in *Input[T, S]) readOnce(r *reconciliation[T]) (S, error) {
	result, known := r.inputs[in]
	if !known {
		value, err := in.read(r)
		result = inputResult{value, err}
		if len(in.live) == 0 { // a live object may be applied in the same reconcile
			if r.inputs == nil {
				r.inputs = map[any]inputResult{}
			}
			r.inputs[in] = result
		}
	}
	value, _ := result.value.(S)
	return value, result.err
}

// inputError returns the error of an input as one of the child that is being built. It returns nil if an object is missing
// and the child is applied nevertheless.
func (r *reconciliation[T]) inputError(err error) error {
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

// Reads declares that an input reads objects of a kind, such as &corev1.ConfigMap{}, by name. names returns their names for a
// T; an empty namespace is that of the T. It must only read, and always return the same names for the same T.
//
// A change of such an object, its deletion and its re-creation trigger a reconcile of the T. The cache holds only their
// metadata. A whole object is read from the API server, with one request, after a restart and whenever the object or the
// owner's spec, labels or annotations have changed. The metadata alone (*metav1.PartialObjectMetadata) is read from the cache.
// If the set builds objects of the kind, the cache holds whole ones anyway, and they are read there. So is their metadata. In either
// case, what is read is never older than the event that triggered the reconcile.
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

// From returns an input that the function reads. Its reader reads the objects that reads declare, and refuses all others, so
// that a change of whatever was read triggers a reconcile. The function must be a function of the owner's spec, labels and
// annotations and of what it reads: not of the owner's status, the time, or a global. It must not change what it reads. The owner
// is a copy, of which the value may keep a part. Nobody may change the value: it is used again.
//
// If the function returns an error of the API server that something is not found, the children that are built from the input
// stay as they are, and the error of [ChildSet.Reconcile] is a [*WaitingError] with the reason ReferenceNotFound. With the
// option [KeepWhileMissing] they are built with the value that the function returned beside its error. Any other error is
// returned with the name of the child. It does not hold up the other children. An object that exists for more than a minute and that
// the cache does not show, because of its selector or namespaces, is a [*NotCachedError].
func From[T client.Object, S any](read func(ctx context.Context, r client.Reader, owner T) (S, error), reads ...Read[T]) *Input[T, S] {
	in := &Input[T, S]{mistake: checkComparable(reflect.TypeFor[S](), nil)}
	for _, one := range reads {
		in.references = append(in.references, one.reference)
	}
	call := func(ctx context.Context, r *reconciliation[T]) (S, []readVersion, error) {
		owner := r.ownerOfInputs()
		reader := &inputReader{
			Reader: r.set.inputReader(r.client), scheme: r.client.Scheme(), live: r.set.applier.apiReader, unseen: r.noteUnseen,
			owner: owner, references: in.references,
		}
		value, err := read(ctx, reader, owner)
		return value, reader.reads, err
	}
	in.read = func(r *reconciliation[T]) (S, error) {
		if known, ok := r.remembered(in); ok {
			return known.value.(S), nil
		}
		value, reads, err := call(r.ctx, r)
		r.remember(in, reads, value, err)
		return value, err
	}
	in.isPure = func(r *reconciliation[T]) bool {
		known, ok := r.remembered(in)
		if !ok {
			return true // it is read in every reconcile
		}
		value, reads, err := call(passcontext.WithoutFaults(r.ctx), r)
		return err != nil || !slices.Equal(reads, known.reads) || sameValue(value, known.value)
	}
	return in
}

// sameValue reports whether two values are equal, also if one of them has cached something, as a resource.Quantity its text.
func sameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	first, err := json.Marshal(a)
	second, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(first, second)
}

// ownerOfInputs returns a copy of the owner for the functions of inputs. Their values may keep parts of it, and are remembered,
// while a step may change the owner in memory, and the memory of one that the cache shows is used again.
func (r *reconciliation[T]) ownerOfInputs() T {
	var none T
	if any(r.copied) == any(none) {
		r.copied = r.object.DeepCopyObject().(T)
	}
	return r.copied
}

// VersionHash returns an input whose value is a [Hash] of the [Versions] of all objects that reads declare: their names, UIDs
// and resource versions. In an annotation of a pod template it rolls the pods when one of the objects changes. It reads
// metadata from the cache, so it sends no request and sees no content. If nothing is declared for an owner the value is
// empty. If objects are missing, the value is that of the others: see [KeepWhileMissing].
//
// The resource version changes with every write that changes anything of the object: its content, a label, an annotation, a
// finalizer, an owner reference, a managed field, the deletionTimestamp of a deletion that a finalizer holds up. So the value
// changes too, and the pods roll, although what they read may be the same. It also changes when an object is deleted and created
// again with the same content. [ContentHash] changes with the content alone.
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
		hash, hashErr := Hash(Versions(used...))
		return hash, errors.Join(hashErr, err)
	}, reads...)
}

// Live returns an input whose value is the live object of another child of the same set, as it is after that was applied. The
// child that is built from it comes after the other one, and waits until the object exists. Use [Child.After] as well if it
// has to be ready. The object may be the cache's own: do not change it. The value is nil if the other child is built without
// an object, or is left out ([IfServed]). P is the type of the other child.
//
//	ownedresources.BuildFrom(ownedresources.Live[*corev1.Service](service), ingress)
func Live[P, T client.Object](child *Child[T]) *Input[T, P] {
	in := &Input[T, P]{live: []*Child[T]{child}, mistake: checkLive[P](child)}
	in.read = func(r *reconciliation[T]) (value P, err error) {
		objs, err := liveObjects[P](r, child)
		switch {
		case err != nil || len(objs) == 0:
			return value, err
		case len(objs) > 1:
			return value, fmt.Errorf("%s has %d objects: use LiveEach", child.describe(), len(objs))
		}
		return objs[0], nil
	}
	return in
}

// LiveEach is [Live] for a child that has any number of objects. It waits until all of them exist. The value is empty if the
// other child is built without objects.
func LiveEach[P, T client.Object](child *Child[T]) *Input[T, []P] {
	in := &Input[T, []P]{live: []*Child[T]{child}, mistake: checkLive[P](child)}
	in.read = func(r *reconciliation[T]) ([]P, error) { return liveObjects[P](r, child) }
	return in
}

// Pair is the value of [Both].
type Pair[A, B any] struct {
	First  A // the value of the first input
	Second B // the value of the second input
}

// Both returns an input whose value is that of two others, for a child that is built from both, such as a workload from
// settings and from a live Secret. For more than two, use it again: one of the two may be another Both.
//
// If an object is missing for one of them, it is missing for the child: see [From] and [KeepWhileMissing].
func Both[T client.Object, A, B any](first *Input[T, A], second *Input[T, B]) *Input[T, Pair[A, B]] {
	if first == nil || second == nil {
		return &Input[T, Pair[A, B]]{mistake: errors.New("one of the two inputs of Both is nil")}
	}
	in := &Input[T, Pair[A, B]]{
		references: slices.Concat(first.references, second.references),
		live:       slices.Concat(first.live, second.live),
		mistake:    cmp.Or(first.mistake, second.mistake),
	}
	in.isPure = func(r *reconciliation[T]) bool { return first.pure(r) && second.pure(r) }
	in.read = func(r *reconciliation[T]) (pair Pair[A, B], err error) {
		pair.First, err = first.readOnce(r)
		var other error
		if pair.Second, other = second.readOnce(r); err == nil || isMissing(err) && other != nil {
			err = other // which keeps the child from being built, also one with KeepWhileMissing
		}
		return pair, err
	}
	return in
}

func checkLive[P, T client.Object](child *Child[T]) error {
	if child == nil {
		return errors.New("the child whose live object is an input is nil")
	}
	if t := reflect.TypeOf(child.sample); !t.AssignableTo(reflect.TypeFor[P]()) {
		return fmt.Errorf("the input is the live object of a child of type %s: give Live that type instead of %s", t, reflect.TypeFor[P]())
	}
	return nil
}

func liveObjects[P, T client.Object](r *reconciliation[T], child *Child[T]) (objs []P, err error) {
	state := &r.states[r.set.order.index[child]]
	if state.leftOut() {
		return nil, nil
	}
	for _, d := range r.objects[state.from:state.to] {
		live, ok := d.live.(P)
		if !ok {
			return nil, waitForDependency(d.kind.describe(d.object))
		}
		objs = append(objs, live)
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

// checkComparable returns an error if values of a type cannot be compared by reflect.DeepEqual.
func checkComparable(t reflect.Type, seen []reflect.Type) error {
	if slices.Contains(seen, t) {
		return nil
	}
	seen = append(seen, t)
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return fmt.Errorf("an input of type %s cannot be compared, so nobody could tell whether it has changed: leave %s out of its value", seen[0], t)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkComparable(t.Elem(), seen)
	case reflect.Map:
		return errors.Join(checkComparable(t.Key(), seen), checkComparable(t.Elem(), seen))
	case reflect.Struct:
		for field := range t.Fields() {
			if err := checkComparable(field.Type, seen); err != nil {
				return err
			}
		}
	}
	return nil
}
