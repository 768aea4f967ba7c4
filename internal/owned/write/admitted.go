package write

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
)

// KeepAdmitted applies an object whose apply was refused, with the fields as they are live that admission has set when the object was created:
// see [plan.Examine]. It returns nil if that does not help. If the object is written, d has these fields.
func KeepAdmitted(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, why *plan.Refused, options ...client.PatchOption) (client.Object, error) {
	if d.Admitted = why.Admitted; d.Admitted == nil {
		return nil, nil
	}
	answer, err := ServerSideApply(ctx, d, live, options...)
	if err == nil {
		return answer, nil
	}
	d.Admitted = nil
	return nil, ignoreInvalid(err)
}

func ignoreInvalid(err error) error {
	if plan.IsInvalid(err) {
		return nil
	}
	return err
}
