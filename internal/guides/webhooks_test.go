//go:build !race

// This file uses types that are declared in files with the build tag !race.

package guides

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/ratcheting"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
	"github.com/opblocks/opblocks/schedule"
)

// +kubebuilder:webhook:mutating=true,path=/mutate-shop-example-com-v1-shop,groups=shop.example.com,resources=shops,verbs=create,versions=v1,name=defaulting.shop.example.com,failurePolicy=ignore,timeoutSeconds=3,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-shop-example-com-v1-shop,groups=shop.example.com,resources=shops,verbs=create;update,versions=v1,name=validation.shop.example.com,failurePolicy=ignore,timeoutSeconds=3,sideEffects=None,admissionReviewVersions=v1

// SetupWebhooks adds the webhooks of Shops to the server of a manager.
func SetupWebhooks(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Shop{}).WithDefaulter(shopDefaulter{}).WithValidator(shopValidator).Complete()
}

// shopValidator refuses what would make a step fail.
var shopValidator = ratcheting.Validator[*Shop]{
	Validate: func(s *Shop) field.ErrorList {
		errs := ownedresources.ValidateName[appsv1.StatefulSet](s.Name, field.NewPath("metadata", "name"))
		if backup := s.Spec.Backup; backup != nil {
			errs = append(errs, schedule.Validate(backup.Schedule, backup.Options, time.Hour, field.NewPath("spec", "backup"))...)
		}
		return errs
	},
	Warn: func(s *Shop) []string {
		if s.Spec.Backup == nil {
			return []string{"spec.backup: without it, nothing copies the data"}
		}
		return schedule.Warnings(s.Spec.Backup.Options, field.NewPath("spec", "backup"))
	},
}

// shopDefaulter writes what the schema cannot: a default that depends on another field.
type shopDefaulter struct{}

func (shopDefaulter) Default(_ context.Context, s *Shop) error {
	if s.Spec.Domain == "" && s.Name != "" { // a generated name is not known yet
		s.Spec.Domain = s.Name + ".example.com"
	}
	return nil
}

// ServeWebhooks returns the manager's options with a server for webhooks, whose certificate is in a folder. Call AddWebhooks for the manager.
func ServeWebhooks(options ctrl.Options, certDir string) ctrl.Options {
	options.WebhookServer = webhook.NewServer(webhook.Options{CertDir: certDir})
	return options
}

// AddWebhooks adds the webhooks to a manager, which is not ready before they are served.
func AddWebhooks(mgr ctrl.Manager) error {
	if err := SetupWebhooks(mgr); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}

func TestShopWebhooks(t *testing.T) {
	backup := func(s string) *Shop {
		return shop(func(spec *ShopSpec) { spec.Backup = &scheduledjobs.Spec{Schedule: s} })
	}
	named := backup("@daily")
	named.Name = strings.Repeat("a", 53)
	deleted := backup("hourly")
	deleted.DeletionTimestamp = new(metav1.Now())
	tests := map[string]struct {
		reason      string
		before, now *Shop
		refused     bool
		warnings    int
	}{
		"Valid":     {"nothing is wrong", nil, backup("@daily"), false, 0},
		"NoBackup":  {"it is valid, and probably not meant", nil, shop(), false, 1},
		"Schedule":  {"the Job would never run", nil, backup("hourly"), true, 0},
		"Interval":  {"the backups would overlap", nil, backup("@every 1m"), true, 0},
		"Name":      {"the StatefulSet would be refused", nil, named, true, 0},
		"Untouched": {"the check is newer than the object", backup("@every 1m"), backup("@every 1m"), false, 1},
		"Deleted":   {"its finalizer is removed", backup("hourly"), deleted, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			warnings, err := shopValidator.ValidateCreate(t.Context(), tc.now)
			if tc.before != nil {
				warnings, err = shopValidator.ValidateUpdate(t.Context(), tc.before, tc.now)
			}
			if (err != nil) != tc.refused || len(warnings) != tc.warnings {
				t.Errorf("%s: warnings %q, error %v", tc.reason, warnings, err)
			}
		})
	}
}

func TestShopDefaulter(t *testing.T) {
	s := shop()
	for range 2 { // it is idempotent
		if err := (shopDefaulter{}).Default(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Name+".example.com", s.Spec.Domain); diff != "" {
			t.Error(diff)
		}
	}
}
