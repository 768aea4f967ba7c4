package reconciletest_test

import (
	"cmp"
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// withTheme is a defaulting webhook that sets a theme.
func withTheme(s *Store) { s.Spec.Theme = cmp.Or(s.Spec.Theme, "wood") }

// allowed is a validating webhook that refuses nothing.
func allowed(*Store, *Store) error { return nil }

// fixedTheme is a validating webhook that refuses a change of the theme.
func fixedTheme(before, now *Store) error {
	if before.Spec.Theme != "" && now.Spec.Theme != before.Spec.Theme {
		return errors.New("the theme cannot change")
	}
	return nil
}

// faultyWebhooks are operators whose own webhooks lead to a mistake.
var faultyWebhooks = map[string]faulty{
	"DefaultingIsNotIdempotent": {
		reason: "the defaulting changes the store at each write, and each write of the operator triggers a pass",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{refuses: allowed, defaults: func(s *Store) {
				if withTheme(s); !sound {
					s.Spec.Theme += "!"
				}
			}, pass: func(ctx context.Context, p *reconciletest.Process, s *Store) error {
				if s.Annotations[themeKey] == s.Spec.Theme {
					return nil
				}
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, themeKey, s.Spec.Theme)
				return client.IgnoreNotFound(p.Client().Update(ctx, s))
			}}.scenario(reconciletest.Create(store()))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{"it does not become quiet in 300 passes: update Store default/web", "spec.theme: from "},
	},
	"ReliesOnTheDefault": {
		reason: "a webhook that is passed over has not set the theme",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{refuses: allowed, defaults: withTheme, pass: func(ctx context.Context, p *reconciletest.Process, s *Store) error {
				if sound {
					withTheme(s)
				}
				return furnish(ctx, p, s)
			}}.scenario(reconciletest.Create(store(func(s *Store) { s.Spec.Shelves = 2 })).Then(hasRoom("2", "wood")))
		},
		fault: reconciletest.Faults.WebhookPassedOver,
		says: []string{
			"webhook passed over at: the user's create of Store default/web #1", "ConfigMap default/web: data.theme: ",
		},
	},
	"GivesUpIfAWebhookIsDown": {
		reason: "its own webhook cannot be reached for a moment, and the operator takes that for good",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{refuses: allowed, defaults: withTheme, pass: func(ctx context.Context, p *reconciletest.Process, s *Store) error {
				if s.Status.Phase != "" || !controllerutil.AddFinalizer(s, finalizer) {
					return nil
				}
				err := p.Client().Update(ctx, s)
				if !sound && err != nil && strings.Contains(err.Error(), "failed calling webhook") {
					now := store()
					if err := p.Client().Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
						return err
					}
					return openStore(ctx, p.Client(), now, "Broken")
				}
				return client.IgnoreNotFound(err)
			}}.scenario(reconciletest.Create(store()))
		},
		fault: reconciletest.Faults.WebhookUnreachable,
		says: []string{
			"webhook unreachable at: update Store default/web #1",
			`failed calling webhook "vstore.example.com": failed to call webhook: Post "https://webhook-service.system.svc:443/validate`,
		},
	},
	"ItsWebhookRefusesItsWrite": {
		reason: "the validation is for users, and refuses what the operator writes too",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{refuses: fixedTheme, defaults: withTheme, pass: func(ctx context.Context, p *reconciletest.Process, s *Store) error {
				if sound || s.Spec.Theme == "steel" {
					return nil
				}
				s.Spec.Theme = "steel"
				return p.Client().Update(ctx, s)
			}}.scenario(reconciletest.Create(store()))
		},
		kind: reconciletest.Findings.DoesNotSucceed,
		says: []string{`admission webhook "vstore.example.com" denied the request: the theme cannot change`},
	},
}
