package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

const (
	// Finalizer is on every Cache, also without a registry: an operator that had one may have told it of the Cache.
	Finalizer = "store.example.com/registration"
	// giveUpAfter is how long a deletion waits for a registry that does not answer.
	giveUpAfter = 10 * time.Minute
)

// registration returns the step that registers the address of a Cache.
func registration(r *registry.Client) reconcile.Step[*storev1alpha1.Cache] {
	if r == nil {
		return noRegistry{}
	}
	return external.New(external.Resource[*storev1alpha1.Cache, string]{
		Record: func(c *storev1alpha1.Cache) *external.Record { return &c.Status.Registration },
		Key:    func(c *storev1alpha1.Cache) string { return client.ObjectKeyFromObject(c).String() },
		Observe: func(ctx context.Context, _ client.Client, c *storev1alpha1.Cache, _ external.Reference) (string, error) {
			address, err := r.Get(ctx, client.ObjectKeyFromObject(c))
			if err == nil && address == "" {
				err = external.ErrNotFound
			}
			return address, err
		},
		Desired: func(_ context.Context, _ client.Client, c *storev1alpha1.Cache) (string, error) {
			return fmt.Sprintf("%s:%d", primary(c), serverPortNumber), nil
		},
		Differs: func(_ external.Reference, observed, desired string) bool { return observed != desired },
		Create: func(ctx context.Context, _ client.Client, c *storev1alpha1.Cache, _ external.Reference, address string) (id string, err error) {
			return "", r.Put(ctx, client.ObjectKeyFromObject(c), address)
		},
		Update: func(ctx context.Context, _ client.Client, c *storev1alpha1.Cache, _ external.Reference, _, address string) error {
			return r.Put(ctx, client.ObjectKeyFromObject(c), address)
		},
		Delete: func(ctx context.Context, _ client.Client, c *storev1alpha1.Cache, _ external.Reference) error {
			return r.Delete(ctx, client.ObjectKeyFromObject(c))
		},
		Adopt:    func(*storev1alpha1.Cache, string) error { return nil }, // nobody else uses the names of Caches
		Observed: func(c *storev1alpha1.Cache, address string) { c.Status.RegisteredAddress = address },
	})
}

// registrationStep returns the step of the registry. Without a registry it has no condition.
func registrationStep(r *registry.Client) reconcile.NamedStep[*storev1alpha1.Cache] {
	named := reconcile.Named("registration", registration(r)).Finalizer(Finalizer).GiveUpCleanupAfter(giveUpAfter).Optional()
	if r == nil {
		return named
	}
	return named.Reporting("Registered")
}

// noRegistry is the step of an operator without a registry. Its finalizer is the same, so that it comes off.
type noRegistry struct{}

var _ reconcile.FinalizingStep[*storev1alpha1.Cache] = noRegistry{}

// Reconcile does nothing.
func (noRegistry) Reconcile(context.Context, client.Client, *storev1alpha1.Cache) error { return nil }

// Finalize does nothing.
func (noRegistry) Finalize(context.Context, client.Client, *storev1alpha1.Cache) error { return nil }
