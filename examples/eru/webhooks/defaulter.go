package webhooks

import (
	"cmp"
	"context"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
)

// Defaulter writes the defaults that the schema cannot: the name of the Deployment, which is the Eru's own, and the time zone.
type Defaulter struct{}

// Default writes the defaults of fields that are empty. An Eru with a generated name has no name yet: the field of its Deployment's
// name stays empty, which means the same.
func (Defaulter) Default(_ context.Context, eru *eruv1.Eru) error {
	eru.Spec.DeploymentName = cmp.Or(eru.Spec.DeploymentName, eru.Name)
	eru.Spec.TimeZone = cmp.Or(eru.Spec.TimeZone, "UTC")
	return nil
}
