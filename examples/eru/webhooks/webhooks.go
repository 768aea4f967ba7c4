// Package webhooks validates Erus, and writes their defaults, before the API server stores them. The operator works without them: it
// reports what is invalid in a condition, and an absent field means the same as its default.
package webhooks

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
)

// The webhooks, from which `make manifests` generates config/webhook/base/manifests.yaml. Defaults are only written when an Eru is created: a time
// zone that an update adds would count as a change of the schedule, which then takes effect anew.
// +kubebuilder:webhook:mutating=true,path=/mutate-mtsre-meitu-com-v1-eru,groups=mtsre.meitu.com,resources=erus,verbs=create,versions=v1,name=defaulting.mtsre.meitu.com,failurePolicy=ignore,timeoutSeconds=3,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-mtsre-meitu-com-v1-eru,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,name=validation.mtsre.meitu.com,failurePolicy=ignore,timeoutSeconds=3,sideEffects=None,admissionReviewVersions=v1

// SetupWithManager adds the webhooks to the server of a manager. A schedule must not have a shorter interval than minInterval.
func SetupWithManager(mgr ctrl.Manager, minInterval time.Duration) error {
	return ctrl.NewWebhookManagedBy(mgr, &eruv1.Eru{}).WithDefaulter(Defaulter{}).WithValidator(Validator(minInterval)).Complete()
}
