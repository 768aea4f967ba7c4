package write

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
)

// FillGenerated decides which values of the generated keys are sent with the next apply, and returns the live object
// that they were taken from. Its version is the precondition of that apply, so a value that somebody sets in between is
// not replaced.
//
// New values are only made after a read past the cache: a cache may leave out the data of Secrets. A trigger is only
// compared for an owner that is known to be current. A process that has just started may see an older trigger, and
// would rotate back.
func FillGenerated(ctx context.Context, d *owned.Desired, live client.Object) (client.Object, error) {
	if len(d.Generate) == 0 {
		return live, nil
	}
	plan := feature.PlanFill(d.Generate, live)
	if len(plan.Fill) > 0 || plan.Triggered {
		var err error
		if plan.Triggered {
			err = d.Owner.Confirm(ctx)
		}
		if err != nil {
			return nil, err
		}
		if live, err = d.ReadLive(ctx); err != nil {
			return nil, fmt.Errorf("read %s: %w", d, err)
		}
		if err := d.Owner.MayWrite(d, live); err != nil {
			return nil, err
		}
		plan = feature.PlanFill(d.Generate, live)
	}
	feature.SetGenerated(ctx, d, plan)
	d.GeneratedFrom = live.GetResourceVersion()
	return live, nil
}
