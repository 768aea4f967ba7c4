package webhooks

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/reconcile/ratcheting"
	"github.com/opblocks/opblocks/schedule"
)

// Validator returns a validator of what the schema cannot say: schedule, time zone and blackout windows. It makes the checks of the operator,
// whose minInterval must be the same.
func Validator(minInterval time.Duration) ratcheting.Validator[*eruv1.Eru] {
	spec := field.NewPath("spec")
	return ratcheting.Validator[*eruv1.Eru]{
		Validate: func(eru *eruv1.Eru) field.ErrorList {
			return schedule.Validate(cmp.Or(eru.Spec.Schedule, eruv1.DefaultSchedule), eru.Spec.Options, minInterval, spec)
		},
		Warn: func(eru *eruv1.Eru) []string { return schedule.Warnings(eru.Spec.Options, spec) },
	}
}
