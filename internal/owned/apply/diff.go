package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/preview"
	"github.com/opblocks/opblocks/internal/record"
)

// Change is what [ownedresources.Apply] would do to one object.
type Change struct {
	// Object is the desired object, as it was given.
	Object client.Object
	// Operation is what would be done: OperationResultNone, OperationResultCreated or OperationResultUpdated.
	Operation Operation
	// Differences are the fields that an apply would change, in the order of their paths. Fields that the first apply
	// after a POST would remove come last. The list is empty for an object that would be created.
	Differences []Difference
}

// Difference is one field that an apply would change.
type Difference = preview.Difference

// Diff returns what would be done to an object: see [ownedresources.Diff]. It is a preview of an object without options.
func (a Previews) Diff(ctx context.Context, o *owned.Owner, child owned.Declared) (Change, error) {
	d, err := desireDeclared(o, child)
	if err != nil {
		return Change{}, err
	}
	if err := plan.CheckValues(d); err != nil {
		return Change{}, err
	}
	p, err := a.previewLive(ctx, d)
	if orphan, waits := errors.AsType[owned.OrphanError](err); waits {
		return Change{}, orphan
	}
	if err != nil {
		return Change{}, err
	}
	return Change{Object: child.Object, Operation: operations[p.Action], Differences: p.Differences}, nil
}

// operations are the operations of the actions of an object without options.
var operations = map[preview.Action]Operation{preview.None: Unchanged, preview.Create: Created, preview.Apply: Applied}

// differencesOfApply finds out by dry runs which fields an apply would change. It also returns the object as it would be.
func differencesOfApply(ctx context.Context, d *owned.Desired, live client.Object) (differences []Difference, answer client.Object, err error) {
	answer, err = write.ServerSideApply(ctx, d, live, client.DryRunAll)
	switch {
	case plan.IsInvalid(err):
		answer, err = resolvedAnswer(ctx, d, err)
	case plan.IsLiveUntypable(err):
		answer, err = write.ByPatch(ctx, d, record.LastAppliedOf(live), err, client.DryRunAll)
	}
	if err != nil {
		return nil, nil, err
	}
	found := differ{hidden: isSecret(d)}
	if answer.GetResourceVersion() == "" { // controller-runtime's fake client answers a dry run with an empty object
		found.addLocal(d, live)
		return found.found, live, nil
	}
	kept, err := keptByHandOver(d, live)
	if err != nil {
		return nil, nil, err
	}
	before, after, err := authored(live, answer)
	if err != nil {
		return nil, nil, err
	}
	found.addChanged(before, overlaid(after, kept))
	removed, err := removedByTakeOver(d, live, answer)
	if err != nil || len(removed) == 0 {
		return found.found, answer, err
	}
	// The apply removes what is not desired, unless the API server would default it again.
	fresh, err := write.PostDryRun(ctx, d, "")
	if err != nil {
		return nil, nil, err
	}
	before, after, err = authored(live, fresh)
	if err != nil {
		return nil, nil, err
	}
	after = overlaid(after, kept)
	for _, fields := range removed {
		found.addRemoved(fields, before, after)
	}
	return found.found, answer, nil
}

// keptByHandOver returns the live fields that the operator does not send any more, and that it hands over before the apply, so that they
// stay.
func keptByHandOver(d *owned.Desired, live client.Object) (map[string]any, error) {
	if _, releases := plan.TakeOverSteps(d, record.LastAppliedOf(live)); !releases {
		return nil, nil
	}
	return plan.HandedOverFields(d, live)
}

// overlaid returns a tree with the fields of another one, which replace its own.
func overlaid(tree, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return tree
	}
	tree = maps.Clone(tree)
	if tree == nil {
		tree = map[string]any{}
	}
	for name, value := range fields {
		below, isMap := value.(map[string]any)
		if isMap {
			inner, _ := tree[name].(map[string]any)
			value = overlaid(inner, below)
		}
		tree[name] = value
	}
	return tree
}

// isSecret reports whether the values of an object are hidden.
func isSecret(d *owned.Desired) bool { return d.Kind.GVK.Kind == "Secret" }

// resolvedAnswer returns what a refused apply would make of the object if the live fields that contradict it were
// removed. If that does not help, the error is the refusal.
func resolvedAnswer(ctx context.Context, d *owned.Desired, refusal error) (client.Object, error) {
	live, err := d.ReadTree(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	_, trial, err := write.Resolve(ctx, d, live, refusal)
	if err == nil && trial == nil {
		err = refusal
	}
	return trial, err
}

// removedByTakeOver returns the fields that the next apply takes over, and then removes if they are not desired. These
// are the fields of the POST's managed fields entry. If the managed fields of the object were cleared, it also returns
// the fields that package write removes.
func removedByTakeOver(d *owned.Desired, live, answer client.Object) (removed []*metav1.FieldsV1, err error) {
	last := record.LastAppliedOf(live)
	if last.Method != record.ByApply {
		for _, entry := range live.GetManagedFields() {
			if entry.Manager == string(d.Owner.FieldManager) && entry.Subresource == "" && entry.FieldsV1 != nil {
				removed = append(removed, entry.FieldsV1)
			}
		}
	}
	if plan.OurEntry(d, answer) < 0 || !plan.IsLost(d, last, live) && !plan.IsReclaimable(d, answer) {
		return removed, nil
	}
	if dropped, err := plan.HasDropped(d, last, answer); err != nil || !dropped {
		return removed, err
	}
	taken, err := plan.Reclaimable(d, answer)
	if err != nil {
		return nil, err
	}
	fields, err := plan.FieldsV1Of(taken)
	return append(removed, fields), err
}

// authored returns two objects as trees of the fields that an author may set.
func authored(objs ...client.Object) (before, after map[string]any, err error) {
	var trees [2]map[string]any
	for i, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, nil, err
		}
		metadata, _ := content["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		annotations = maps.Clone(annotations) // an unstructured object shares this map
		delete(annotations, record.Applied)
		delete(annotations, record.BuiltFrom)
		trees[i] = map[string]any{}
		for k, v := range content {
			switch k {
			case "apiVersion", "kind", "status":
			case "metadata":
				trees[i][k] = map[string]any{"labels": metadata["labels"], "annotations": annotations, "ownerReferences": metadata["ownerReferences"]}
			default:
				trees[i][k] = v
			}
		}
	}
	return trees[0], trees[1], nil
}
