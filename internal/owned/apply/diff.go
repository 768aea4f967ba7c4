package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Diff returns what an apply would change in an object: see [ownedresources.Diff]. It is a preview of an object without options.
func (a Previews) Diff(ctx context.Context, o *owned.Owner, child owned.Declared) (preview.Change, error) {
	d, err := desireDeclared(o, child)
	if err != nil {
		return preview.Change{}, err
	}
	if err := plan.CheckValues(d); err != nil {
		return preview.Change{}, err
	}
	p, err := a.previewLive(ctx, d)
	if orphan, waits := errors.AsType[owned.OrphanError](err); waits {
		return preview.Change{}, orphan
	}
	if err != nil {
		return preview.Change{}, err
	}
	return p.Change, nil
}

// differencesOfApply finds the fields that an apply would change, by dry runs. answer is the object as it would be after the apply.
func differencesOfApply(ctx context.Context, d *owned.Desired, live client.Object) (differences []preview.Difference, answer client.Object, err error) {
	last := record.LastAppliedOf(live)
	migrates, releases := plan.TakeOverSteps(d, last)
	var kept map[string]any // live values of fields that another manager gets before the apply, so that the apply does not remove them
	if releases {
		if kept, err = plan.HandedOverFields(d, live); err != nil {
			return nil, nil, err
		}
	}
	if migrates && live.GetUID() != "" { // an object of controller-runtime's fake client has no UID
		answer, err = write.TakeOverDryRun(ctx, d, live, kept)
	}
	if answer == nil && err == nil {
		anyVersion := live.DeepCopyObject().(client.Object)
		anyVersion.SetResourceVersion("") // if a controller writes the status in between, that is not a conflict
		answer, err = write.ServerSideApply(ctx, d, anyVersion, client.DryRunAll)
	}
	switch {
	case plan.IsInvalid(err):
		answer, err = resolvedAnswer(ctx, d, err)
	case plan.IsLiveUntypable(err):
		answer, err = write.ByPatch(ctx, d, last, err, client.DryRunAll)
	}
	if err != nil {
		return nil, nil, err
	}
	found := differ{hidden: isSecret(d)}
	if answer.GetResourceVersion() == "" { // controller-runtime's fake client answers a dry run with an empty object
		found.addLocal(d, live)
		return found.found, live, nil
	}
	if answer, err = reclaimedAnswer(ctx, d, live, answer); err != nil {
		return nil, nil, err
	}
	before, after, err := authored(live, answer)
	if err != nil {
		return nil, nil, err
	}
	found.addChanged(before, plan.Overlaid(after, kept))
	return found.found, answer, nil
}

// reclaimedAnswer returns the object as it would be after an apply and [write.Reclaim]. answer is the answer to a dry run of the apply. If
// Reclaim would remove no field, reclaimedAnswer returns answer.
func reclaimedAnswer(ctx context.Context, d *owned.Desired, live, answer client.Object) (client.Object, error) {
	last := record.LastAppliedOf(live)
	if plan.OurEntry(d, answer) < 0 || !plan.IsLost(d, last, live) && !plan.IsReclaimable(d, answer) {
		return answer, nil
	}
	if dropped, err := plan.HasDropped(d, last, answer); err != nil || !dropped {
		return answer, err
	}
	return write.ReclaimDryRun(ctx, d, live, answer)
}

// isSecret reports whether an object is a Secret, whose values a preview must not show.
func isSecret(d *owned.Desired) bool { return d.Kind.GVK.Kind == "Secret" }

// resolvedAnswer is called after the API server has refused a dry run of an apply. It returns what the apply would make of the object
// without the live fields that contradict it. If that does not help, the error is the refusal.
func resolvedAnswer(ctx context.Context, d *owned.Desired, refusal error) (client.Object, error) {
	live, err := d.ReadTree(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	migrates, _ := plan.TakeOverSteps(d, record.LastAppliedOf(live))
	if migrates {
		if err := write.MoveOwnership(d, live); err != nil {
			return nil, err
		}
	}
	_, trial, err := write.Resolve(ctx, d, live, refusal)
	if err == nil && trial == nil {
		trial, err = admittedAnswer(ctx, d, live, migrates, refusal)
	}
	return trial, err
}

// admittedAnswer is called after the API server has refused a dry run of an apply. It returns what the apply would make of the object with
// the live values of the fields that admission has set. If that does not help, the error is the refusal.
func admittedAnswer(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, migrates bool, refusal error) (answer client.Object, err error) {
	asCreated, _ := write.TryCreation(ctx, d) // without an answer, it is not known what admission changes
	why, err := plan.Examine(d, live, asCreated)
	if err != nil {
		return nil, err
	}
	if migrates && why.Admitted != nil {
		d.Admitted = why.Admitted
		answer, err = write.TakeOverDryRun(ctx, d, live, nil)
	} else {
		answer, err = write.KeepAdmitted(ctx, d, live, why, client.DryRunAll)
	}
	if answer == nil && (err == nil || plan.IsInvalid(err)) {
		err = why.Explain(refusal)
	}
	return answer, err
}

// provenance has the annotations of this library whose changes a preview does not show.
var provenance = record.OnChildren(record.AsAnnotation, func(k record.ChildKey) bool { return k.Provenance })

// authored returns two objects as trees (decoded JSON) of only the fields that a user may set.
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
		for _, key := range provenance {
			delete(annotations, key)
		}
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
