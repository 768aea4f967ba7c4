package reconciletest_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// lossyStore is an OldStore whose conversion does not keep the theme.
type lossyStore struct{ OldStore }

func (s *lossyStore) DeepCopyObject() runtime.Object {
	return &lossyStore{*s.OldStore.DeepCopyObject().(*OldStore)}
}

func (s *lossyStore) ConvertFrom(hub conversion.Hub) error {
	err := s.OldStore.ConvertFrom(hub)
	delete(s.Annotations, themeKey)
	return err
}

// panickingStore is an OldStore whose conversion panics for a large store.
type panickingStore struct{ OldStore }

func (s *panickingStore) DeepCopyObject() runtime.Object {
	return &panickingStore{*s.OldStore.DeepCopyObject().(*OldStore)}
}

func (s *panickingStore) ConvertTo(hub conversion.Hub) error {
	if s.Spec.Size > 4 {
		panic("too many shelves")
	}
	return s.OldStore.ConvertTo(hub)
}

// pickyStore is an OldStore that does not convert a theme.
type pickyStore struct{ OldStore }

func (s *pickyStore) DeepCopyObject() runtime.Object {
	return &pickyStore{*s.OldStore.DeepCopyObject().(*OldStore)}
}

func (s *pickyStore) ConvertFrom(hub conversion.Hub) error {
	if hub.(*Store).Spec.Theme == "gold" {
		return errors.New("gold has no old name")
	}
	return s.OldStore.ConvertFrom(hub)
}

// otherHub is a second hub.
type otherHub struct{ Store }

func (s *otherHub) DeepCopyObject() runtime.Object {
	return &otherHub{*s.Store.DeepCopyObject().(*Store)}
}

// oldTypes returns the scheme of an operator with OldStore, or with another type of version v1alpha1 if it is not sound.
func oldTypes(sound bool, faulty runtime.Object) *runtime.Scheme {
	if sound {
		return storeScheme(&OldStore{}, &OldStoreList{})
	}
	return storeScheme(faulty, &OldStoreList{})
}

// large returns a store with more shelves than panickingStore converts.
func large(sound bool) client.Object {
	if sound {
		return oldStore(5)
	}
	return &panickingStore{*oldStore(5)}
}

// protect adds a finalizer by a patch in the old version.
func protect(ctx context.Context, p *reconciletest.Process, s *Store) error {
	made, err := p.Client().Scheme().New(oldStoreVersion.WithKind("Store"))
	if err != nil || s.DeletionTimestamp != nil {
		return err
	}
	old := made.(client.Object)
	if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), old); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !controllerutil.AddFinalizer(old, finalizer) {
		return nil
	}
	return p.Client().Update(ctx, old)
}

// faultyConversions are operators whose conversion between the versions of a kind has a mistake.
var faultyConversions = map[string]faulty{
	"ConversionLosesAField": {
		reason: "the operator writes the old version, which has no theme, and the conversion does not keep it",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{scheme: oldTypes(sound, &lossyStore{}), pass: protect}.scenario(
				reconciletest.Create(store(func(s *Store) { s.Spec.Theme = "steel" })).Then(reconciletest.Has(store(func(s *Store) { s.Spec.Theme = "steel" }))))
		},
		says: []string{"Store default/web", "spec.theme"},
	},
	"ConversionPanics": {
		reason: "a user creates a large store in the old version",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{scheme: oldTypes(sound, &panickingStore{}), pass: furnish}.scenario(reconciletest.Create(large(sound)))
		},
		says: []string{"conversion webhook for example.com/v1alpha1, Kind=Store failed: internal error occurred during conversion"},
	},
	"ConversionFailsForSomeObjects": {
		reason: "one store has a theme that the old version does not know",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{scheme: oldTypes(sound, &pickyStore{}), pass: protect}.scenario(reconciletest.Create(store(func(s *Store) { s.Spec.Theme = "gold" })))
		},
		kind: reconciletest.Findings.DoesNotSucceed,
		says: []string{"conversion webhook for example.com/v1, Kind=Store failed: gold has no old name"},
	},
	"GivesUpIfTheConversionIsDown": {
		reason: "the webhook of the conversion cannot be reached for a moment, and the operator takes that for good",
		scenario: func(sound bool) reconciletest.Scenario {
			return storeOperator{pass: func(ctx context.Context, p *reconciletest.Process, s *Store) error {
				if s.Status.Phase != "" {
					return nil
				}
				err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), &OldStore{})
				switch {
				case err == nil:
					return openStore(ctx, p.Client(), s, "Open")
				case sound || !strings.Contains(err.Error(), "conversion webhook"):
					return client.IgnoreNotFound(err)
				}
				return openStore(ctx, p.Client(), s, "Broken")
			}}.scenario(reconciletest.Create(store()), reconciletest.Wait(time.Hour))
		},
		fault: reconciletest.Faults.ConversionUnreachable,
		says: []string{
			"conversion unreachable at: get Store default/web #1",
			`conversion webhook for example.com/v1, Kind=Store failed: Post "https://webhook-service.system.svc:443/convert?timeout=30s": connection refused`,
		},
	},
}
