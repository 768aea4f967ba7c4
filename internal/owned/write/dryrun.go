package write

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// TakeOverDryRun returns what [TakeOver] and an apply after it would make of the object. A dry run of the apply alone cannot show that: it
// does not move the ownership of the fields, so a field that is not desired any more would stay. So TakeOverDryRun computes the result of
// the apply. A dry run of a patch then shows what the API server makes of this result, such as the default of a removed field.
//
// kept are the live fields that another field manager would get before the apply. If no ownership has to be moved, or if the result cannot
// be computed, TakeOverDryRun returns nil.
func TakeOverDryRun(ctx context.Context, d *owned.Desired, live client.Object, kept map[string]any) (client.Object, error) {
	tree, err := asTree(d, live)
	if err != nil {
		return nil, err
	}
	taken := tree.DeepCopy()
	if err := MoveOwnership(d, taken); err != nil {
		return nil, err
	}
	if plan.OurEntry(d, taken) < 0 {
		return nil, nil
	}
	want, err := plan.Tree(d, record.ByApply)
	if err != nil {
		return nil, err
	}
	merged, _, err := plan.MergeInto(d, taken, want)
	if err != nil {
		return nil, nil // the live object may have fields of a newer API server, which the schema lacks
	}
	return tryTree(ctx, d, tree, plan.Overlaid(merged, kept))
}

// MoveOwnership changes the managed fields of an object in memory, as [TakeOver] does on the API server. It sends no request.
func MoveOwnership(d *owned.Desired, live client.Object) error {
	manager := string(d.Owner.FieldManager)
	if err := csaupgrade.UpgradeManagedFields(live, sets.New(d.Options.FormerManagers...).Insert(manager), manager); err != nil {
		return fmt.Errorf("take over the fields of %s: %w", d, err)
	}
	return nil
}

// ReclaimDryRun returns what [Reclaim] would make of the object after an apply. answer is the answer to a dry run of the apply.
func ReclaimDryRun(ctx context.Context, d *owned.Desired, live, answer client.Object) (client.Object, error) {
	before, err := asTree(d, live)
	if err != nil {
		return nil, err
	}
	after, err := asTree(d, answer)
	if err != nil {
		return nil, err
	}
	former, owned, err := plan.FormerFields(d, after)
	if err != nil {
		return nil, err
	}
	var trial client.Object
	for _, withSpec := range []bool{true, false} {
		removed, err := plan.Removable(d, former, owned, withSpec)
		if err != nil {
			return nil, err
		}
		tree, err := plan.Without(d, after.Object, removed)
		if err != nil {
			return nil, err
		}
		if trial, err = tryTree(ctx, d, before, tree); !plan.IsInvalid(err) {
			return trial, err
		}
	}
	return trial, err
}

func asTree(d *owned.Desired, obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// tryTree returns what the API server would make of the object if the live object was replaced by tree. The live object's version is not a
// precondition, so a controller that writes the status in between does no harm.
func tryTree(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, tree map[string]any) (client.Object, error) {
	live = live.DeepCopy()
	live.SetResourceVersion("")
	patch, err := plan.ReplacePatch(d, live, tree, nil, record.ByApply)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	answer, err := jsonPatch(ctx, d, patch, client.DryRunAll)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", d, WithoutValues(duplicateNodePortAsInvalid(err)))
	}
	return answer, nil
}
