package write

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// ByPatch writes an object that the API server refuses to apply because a list item has no key. If it cannot write the object either, it
// returns the refusal of the apply.
func ByPatch(ctx context.Context, d *owned.Desired, last record.LastApplied, refusal error, options ...client.PatchOption) (client.Object, error) {
	live, err := d.ReadTree(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := errors.Join(d.Owner.MayWrite(d, live), feature.CheckGenerated(d, live)); err != nil {
		return nil, err
	}
	want, err := plan.Tree(d, record.ByApply)
	if err != nil {
		return nil, err
	}
	schema, keyed := d.Kind.Comparer.Schema(), live.DeepCopy()
	keyless := schema.Keyless(live.Object)
	keyed.Object, _ = applyschema.Without(live.Object, keyless).(map[string]any)
	merged, _, err := plan.MergeInto(d, keyed, want)
	if err != nil {
		return nil, refusal
	}
	schema.FillEmpty(want, merged)
	removes := plan.OurEntry(d, live) < 0 && last.Method != record.ByOthers && last.Hash != string(d.Sum[:])
	for _, withSpec := range []bool{true, false} {
		tree := merged
		if removes {
			if tree, err = plan.WithoutUndesired(d, merged, want, withSpec); err != nil {
				return nil, err
			}
		}
		if !plan.PutBack(tree, live.Object, keyless) {
			return nil, refusal
		}
		patch, err := plan.ReplacePatch(d, live, tree, nil, record.ByCreate)
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
		answer, err := replace(ctx, d, patch, options...)
		switch {
		case err == nil || !plan.IsInvalid(err) || !withSpec || !removes:
			return answer, err
		}
	}
	return nil, refusal
}
