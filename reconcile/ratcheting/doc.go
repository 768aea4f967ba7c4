// Package ratcheting turns a function that returns the errors of an object into a validator for a webhook:
//
//	err := ctrl.NewWebhookManagedBy(mgr, &eruv1.Eru{}).WithValidator(ratcheting.Validator[*eruv1.Eru]{
//		Validate: func(e *eruv1.Eru) field.ErrorList {
//			return schedule.Validate(e.Spec.Schedule, e.Spec.Options, time.Minute, field.NewPath("spec"))
//		},
//	}).Complete()
//
// Validation becomes stricter over time: a new version of an operator has a new check, a time zone is renamed, an administrator sets a
// limit. Objects that were valid before are then invalid. If a webhook refused each update of such an object, nobody could change its
// labels, remove its finalizers or correct it one field at a time. So a [Validator] refuses an update only for errors that the update adds.
// The API server follows the same rule for the schemas of custom resources:
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting.
//
// Patterns, limits, enumerations and CEL rules should be in the schema of a kind, which needs no webhook. The API server checks the schema
// before it calls a validating webhook.
package ratcheting
