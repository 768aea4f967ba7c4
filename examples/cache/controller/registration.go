package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/reconcile"
)

const (
	// Finalizer is on every Cache, also without a registry: an operator that had one may have told it of the Cache.
	Finalizer = "store.example.com/registration"
	// giveUpAfter is how long a deletion waits for a registry that does not answer.
	giveUpAfter = 10 * time.Minute
)

// registration is the step that registers the address of a Cache. Its cleanup removes the entry.
type registration struct {
	registry *registry.Client // nil if there is none
}

var _ reconcile.FinalizingStep[*storev1alpha1.Cache] = &registration{}

func (o *Operator) registrationOptions() []reconcile.StepOption {
	options := []reconcile.StepOption{reconcile.Finalizer(Finalizer), reconcile.GiveUpCleanupAfter(giveUpAfter), reconcile.Optional()}
	if o.Registry != nil {
		options = append(options, reconcile.Reporting("Registered"))
	}
	return options
}

// Reconcile sends a request only if the registry was not told of this address yet.
func (r *registration) Reconcile(ctx context.Context, _ client.Client, c *storev1alpha1.Cache) error {
	address := fmt.Sprintf("%s:%d", primary(c), serverPortNumber)
	if r.registry == nil || c.Status.RegisteredAddress == address {
		return nil
	}
	if err := reconcile.Checkpoint(ctx); err != nil { // a Cache that is gone would never be taken back
		return err
	}
	if err := r.registry.Put(ctx, client.ObjectKeyFromObject(c), address); err != nil {
		return err
	}
	c.Status.RegisteredAddress = address
	return nil
}

// Finalize sends a request even if the status does not say that the registry was told: a crash may have lost that.
func (r *registration) Finalize(ctx context.Context, _ client.Client, c *storev1alpha1.Cache) error {
	if r.registry == nil {
		return nil
	}
	if err := reconcile.Checkpoint(ctx); err != nil { // another Cache of this name may have been registered since
		return err
	}
	return r.registry.Delete(ctx, client.ObjectKeyFromObject(c))
}
