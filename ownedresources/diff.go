package ownedresources

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is what [Apply] would do to one object.
type Change struct {
	// Object is the wanted object.
	Object client.Object
	// Operation is what would be done.
	Operation Operation
	// Differences are what an apply would change, in the order of their paths.
	Differences []Difference
}

// Difference is one field that would change.
type Difference struct {
	// Path of the field: spec.template.spec.containers[0].image.
	Path string
	// Have and Want are the values before and after, as JSON; empty when there is none. Values
	// of Secrets and of environment variables are replaced by "(hidden)".
	Have, Want string
}

func (d Difference) String() string {
	switch {
	case d.Have == "":
		return d.Path + ": + " + d.Want
	case d.Want == "":
		return d.Path + ": - " + d.Have
	}
	return d.Path + ": " + d.Have + " → " + d.Want
}

// Diff tells what Apply would do, and does nothing. What would change is asked of the API server
// by a dry run, so defaults and admission are in it. The errors are those of Apply; the first one
// ends it.
func Diff(ctx context.Context, c client.Client, owner client.Object, desired ...client.Object) ([]Change, error) {
	ref, err := newOwner(owner, c)
	if err != nil {
		return nil, err
	}
	a := newApplier()
	if _, err := a.desire(&ref, desired); err != nil {
		return nil, err
	}
	changes := make([]Change, len(desired))
	for i, obj := range desired {
		if changes[i], err = a.diff(ctx, &ref, obj); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func (a *applier) diff(ctx context.Context, owner *owner, obj client.Object) (Change, error) {
	w, err := a.want(owner, obj, &childOptions{})
	if err != nil {
		return Change{}, err
	}
	change := Change{Object: obj, Operation: Unchanged}
	live, err := a.readLive(ctx, w)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return Change{}, fmt.Errorf("read %s: %w", &w, err)
	case err != nil:
		change.Operation = Created
		_, err := a.trial(ctx, w, w.object.GetName())
		return change, err
	}
	if err := owner.owns(&w, live); err != nil {
		return Change{}, err
	}
	if a.upToDate(&w, live) {
		return change, nil
	}
	change.Operation = Applied
	change.Differences, err = a.applied(ctx, w, live)
	return change, err
}

// trial asks by a dry run what a new object would become; without a name the API server gives one.
func (a *applier) trial(ctx context.Context, w wanted, name string) (client.Object, error) {
	obj := w.marked(created)
	obj.SetGenerateName("dry-run-")
	obj.SetName(name)
	err := w.owner.client.Create(ctx, obj, client.DryRunAll, w.owner.fieldManager, client.FieldValidation(metav1.FieldValidationStrict))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", &w, withoutValues(err))
	}
	return obj, nil
}

// applied asks by a dry run what an apply would change.
func (a *applier) applied(ctx context.Context, w wanted, live client.Object) ([]Difference, error) {
	body, err := w.kind.plan.AppendApply(nil, w.marked(applied), w.kind.gvk, string(live.GetUID()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &w, err)
	}
	answer := w.kind.empty()
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	err = w.owner.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, body), w.owner.fieldManager, client.ForceOwnership, client.DryRunAll)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", &w, withoutValues(unknownField(raced(err))))
	}
	if answer.GetResourceVersion() == "" {
		// controller-runtime's fake client answers a dry run with nothing.
		d := differ{hidden: w.kind.gvk.Kind == "Secret"}
		for _, local := range w.kind.plan.Differences(w.object, live) {
			d.add(local.Path, decoded(local.Have), decoded(local.Want))
		}
		return d.found, nil
	}
	before, after, err := authored(live, answer)
	if err != nil {
		return nil, err
	}
	d := differ{hidden: w.kind.gvk.Kind == "Secret"}
	d.walk(before, after)
	if m, _, _ := splitMark(live.GetAnnotations()[AnnotationApplied]); m == applied {
		return d.found, nil
	}
	// What the POST set is still its entry's. It is taken over with the first apply, and then
	// goes unless the API server would default it again.
	fresh, err := a.trial(ctx, w, "")
	if err != nil {
		return nil, err
	}
	before, after, err = authored(live, fresh)
	if err != nil {
		return nil, err
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == string(w.owner.fieldManager) && entry.Subresource == "" && entry.FieldsV1 != nil {
			d.held(entry.FieldsV1, before, after)
		}
	}
	return d.found, nil
}
