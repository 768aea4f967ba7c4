package apply

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/record"
)

// Change is what [ownedresources.Apply] would do to one object.
type Change struct {
	// Object is the desired object, as it was given.
	Object client.Object
	// Operation is what would be done: OperationResultNone, OperationResultCreated or OperationResultUpdated.
	Operation controllerutil.OperationResult
	// Differences are the fields that an apply would change, in the order of their paths. Fields that the first apply
	// after a POST would remove come last. The list is empty for an object that would be created.
	Differences []Difference
}

// Difference is one field that an apply would change.
type Difference struct {
	// Path of the field, such as spec.template.spec.containers[0].image.
	Path string
	// Have is the live value and Want the value after the apply, as JSON. Each is empty if the value is absent. Values
	// of Secrets and of environment variables are replaced by "(hidden)".
	Have, Want string
}

// String returns the difference in one line: the path, and what is added (+), removed (-) or changed (→).
func (d Difference) String() string {
	switch {
	case d.Have == "":
		return d.Path + ": + " + d.Want
	case d.Want == "":
		return d.Path + ": - " + d.Have
	}
	return d.Path + ": " + d.Have + " → " + d.Want
}

// Diff returns what would be done to an object: see [ownedresources.Diff].
func (a *Applier) Diff(ctx context.Context, o *owned.Owner, obj client.Object) (Change, error) {
	d, err := a.Desire(o, obj, &owned.Options{})
	if err != nil {
		return Change{}, err
	}
	if err := plan.CheckValues(d); err != nil {
		return Change{}, err
	}
	change := Change{Object: obj, Operation: Unchanged}
	live, err := d.ReadLive(ctx)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return Change{}, fmt.Errorf("read %s: %w", d, err)
	case err != nil:
		change.Operation = Created
		_, err := write.PostDryRun(ctx, d, d.Object.GetName())
		return change, err
	}
	p := plan.Decide([]plan.Stage{leaveAlone, plan.CompareLive}, &plan.State{Desired: d, Live: live})
	if p.Verb == plan.DoReturn {
		return Change{}, p.Err
	}
	if err := plan.SilentRefusal(d, live); err != nil {
		return Change{}, fmt.Errorf("apply %s: %w", d, err)
	}
	if p.Verb == plan.DoNothing {
		return change, nil
	}
	change.Operation = Applied
	change.Differences, err = differencesOfApply(ctx, d, live)
	return change, err
}

// leaveAlone is the stage leaveOthers of a plan that is not executed.
func leaveAlone(s *plan.State, p plan.Plan) plan.Plan {
	if err := s.Owner.MayWrite(s.Desired, s.Live); err != nil {
		return plan.Plan{Verb: plan.DoReturn, Err: err}
	}
	return p
}

// differencesOfApply finds out by dry runs which fields an apply would change.
func differencesOfApply(ctx context.Context, d *owned.Desired, live client.Object) ([]Difference, error) {
	answer, err := write.ServerSideApply(ctx, d, live, client.DryRunAll)
	switch {
	case plan.IsInvalid(err):
		answer, err = resolvedAnswer(ctx, d, err)
	case plan.IsLiveUntypable(err):
		answer, err = write.ByPatch(ctx, d, record.LastAppliedOf(live), err, client.DryRunAll)
	}
	if err != nil {
		return nil, err
	}
	found := differ{hidden: d.Kind.GVK.Kind == "Secret"}
	if answer.GetResourceVersion() == "" { // controller-runtime's fake client answers a dry run with an empty object
		for _, local := range d.Kind.Comparer.Differences(d.Object, live) {
			found.add(local.Path, decoded(local.Have), decoded(local.Want))
		}
		return found.found, nil
	}
	before, after, err := authored(live, answer)
	if err != nil {
		return nil, err
	}
	found.addChanged(before, after)
	removed, err := removedByTakeOver(d, live, answer)
	if err != nil || len(removed) == 0 {
		return found.found, err
	}
	// The apply removes what is not desired, unless the API server would default it again.
	fresh, err := write.PostDryRun(ctx, d, "")
	if err != nil {
		return nil, err
	}
	before, after, err = authored(live, fresh)
	if err != nil {
		return nil, err
	}
	for _, fields := range removed {
		found.addRemoved(fields, before, after)
	}
	return found.found, nil
}

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
