package write

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// A server-side apply leaves alone the live fields that it does not send. Such fields may contradict what it sends:
//
//   - A field of another choice of a union, which was defaulted or set by somebody else: spec.strategy.rollingUpdate beside the type
//     Recreate, or the configMap of a volume beside its emptyDir.
//   - A list item whose key somebody has changed. Server-side apply takes it for another item. But it still has a value of our item that
//     must be unique: the name or node port of a port, or the host port of a container.
//
// The API server then refuses every apply of the object, also for other changes. So the object is written in another way: one patch has the
// effect of the apply, and also removes the fields that contradict it. Dry runs find these fields: first the fields that the API server
// names in its refusal, then their siblings, and so on outwards.

// MaxAttempts is the largest number of requests that look for a way around one refusal.
const MaxAttempts = 6

// Overrule writes the object without the live fields that contradict what is desired. If the API server refuses the apply for another
// reason (a field cannot be changed, or the desired object is wrong), Overrule returns nil.
func Overrule(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, refusal error) (client.Object, error) {
	patch, _, err := Resolve(ctx, d, live, refusal)
	if err != nil || patch == nil {
		return nil, err
	}
	return replace(ctx, d, patch)
}

// Resolve finds by dry runs which fields contradict what is desired. It returns a patch that removes these fields, and the object that the
// patch would make. If it finds no such patch, it returns nil for both.
func Resolve(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, refusal error) ([]byte, client.Object, error) {
	c, err := plan.NewContradiction(d, live, refusal)
	if err != nil || c == nil {
		return nil, nil, err
	}
	for range MaxAttempts {
		candidate := c.Next()
		if candidate == nil {
			return nil, nil, nil
		}
		patch, err := plan.ReplacePatch(d, live, candidate, c.Entries, record.ByCreate)
		if err != nil {
			return nil, nil, fmt.Errorf("fields of %s: %w", d, err)
		}
		trial, err := replace(ctx, d, patch, client.DryRunAll)
		if err == nil {
			return patch, trial, nil
		}
		if !plan.IsInvalid(err) {
			return nil, nil, err
		}
		c.Learn(err)
	}
	return nil, nil, nil
}

// replace sends a JSON patch that replaces parts of the live object.
func replace(ctx context.Context, d *owned.Desired, patch []byte, options ...client.PatchOption) (client.Object, error) {
	answer, err := jsonPatch(ctx, d, patch, options...)
	if err != nil {
		return nil, fmt.Errorf("replace fields of %s that contradict it: %w", d, WithoutValues(duplicateNodePortAsInvalid(err)))
	}
	return answer, nil
}
