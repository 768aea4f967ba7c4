package write

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
)

// FillGenerated decides which values of the generated keys the next apply sends. It returns the live object from which it took the values
// to keep. The version of this object is the precondition of the apply. So if somebody sets a value in between, the value is not replaced.
//
// New values are made only after a read from the API server, because a cache may leave out the data of Secrets. If RotateOn returns another
// string than before, FillGenerated first makes sure that the owner is current: a process that has just started may see an older owner, and
// would rotate the value back.
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
