// Package ratcheting makes a validator for a webhook of a function that returns the errors of an object:
//
//	err := ctrl.NewWebhookManagedBy(mgr, &eruv1.Eru{}).WithValidator(ratcheting.Validator[*eruv1.Eru]{
//		Validate: func(e *eruv1.Eru) field.ErrorList {
//			return schedule.Validate(e.Spec.Schedule, e.Spec.Options, time.Minute, field.NewPath("spec"))
//		},
//	}).Complete()
//
// Validation becomes stricter over time: a new version of an operator has a new check, a time zone is renamed, an administrator sets a limit.
// Objects that were valid before are then invalid. If each update of them were refused, nobody could change their labels, remove their
// finalizers or correct them one field at a time. So a [Validator] refuses only the errors that an update adds. It is the rule by which the
// API server ratchets the validation of custom resources: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting.
//
// What an object has to satisfy alone belongs into the schema of its kind, which needs no webhook: patterns, limits, enumerations and
// rules in CEL. The API server checks the schema before it calls a validating webhook.
package ratcheting
