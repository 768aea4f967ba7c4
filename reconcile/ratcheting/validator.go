package ratcheting

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Validator validates objects of type T in a webhook. It implements [admission.Validator].
//
// An object with errors is not created. An update is refused if it adds an error. If the object had an error before, in the same field,
// with the same value and the same message, it becomes a warning. An object that is being deleted may be changed in any way, so that its
// finalizers can be removed. Every object may be deleted.
//
// The error is an Invalid error of the API (422): [apierrors.IsInvalid] returns true for it, kubectl prints it like an error of the
// schema, and its causes name the fields.
type Validator[T client.Object] struct {
	// Validate returns the errors of an object. It must not change the object. Validate is required.
	Validate func(obj T) field.ErrorList
	// Warn returns the warnings about an object. Each warning should have the path of a field, and say what to write instead. The API
	// server passes the warnings on to whoever creates or updates the object, each up to 256 characters. Warn is called only for
	// objects that are not refused. It may be nil.
	Warn func(obj T) []string
}

// ValidateCreate returns an error if the object has errors. Otherwise it returns the warnings of the object.
func (v Validator[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	return v.answer(ctx, obj, v.Validate(obj), nil)
}

// ValidateUpdate returns an error if newObj has errors that oldObj does not have. Otherwise it returns the warnings of newObj, and
// the errors that oldObj had too, as warnings. If newObj is being deleted, it validates nothing.
func (v Validator[T]) ValidateUpdate(ctx context.Context, oldObj, newObj T) (admission.Warnings, error) {
	if !newObj.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	errs := v.Validate(newObj)
	if len(errs) == 0 {
		return v.answer(ctx, newObj, nil, nil)
	}
	added, kept := split(v.Validate(oldObj), errs)
	return v.answer(ctx, newObj, added, kept)
}

// ValidateDelete returns nothing: an invalid object can be deleted.
func (Validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// split divides the errors after an update into errors that the update has added, and errors that the object had
// before.
func split(before, after field.ErrorList) (added, kept field.ErrorList) {
	var known []string
	for _, err := range before {
		known = append(known, err.Error())
	}
	for _, err := range after {
		if slices.Contains(known, err.Error()) {
			kept = append(kept, err)
		} else {
			added = append(added, err)
		}
	}
	return added, kept
}

// answer returns an error for the refused fields. If there are none, it returns the warnings.
func (v Validator[T]) answer(ctx context.Context, obj T, refused, kept field.ErrorList) (warnings admission.Warnings, err error) {
	if len(refused) > 0 {
		return nil, apierrors.NewInvalid(groupKind(ctx, obj), obj.GetName(), refused)
	}
	for _, err := range kept {
		warnings = append(warnings, err.Error())
	}
	if v.Warn != nil {
		warnings = append(warnings, v.Warn(obj)...)
	}
	return warnings, nil
}

// groupKind returns the group and the kind of the admission request. If the context has no request, as in a unit test, it returns the
// group and the kind of the object.
func groupKind(ctx context.Context, obj client.Object) schema.GroupKind {
	if request, err := admission.RequestFromContext(ctx); err == nil {
		return schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
	}
	return obj.GetObjectKind().GroupVersionKind().GroupKind()
}
