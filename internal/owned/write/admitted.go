package write

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
)

// KeepAdmitted applies an object after the API server has refused to apply it. It sends the live values of the immutable fields that
// admission set when the object was created: see [plan.Examine]. If that does not help, it returns nil. If the object is written,
// d.Admitted has these fields.
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
