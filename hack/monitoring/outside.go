package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// outside is an API outside of the cluster. It has an entry for each Cache.
type outside struct {
	down    atomic.Bool // the API does not answer
	mu      sync.Mutex
	entries map[string]string
}

func newOutside() *outside { return &outside{entries: map[string]string{}} }

// call calls do. If the API is down, it returns an error instead.
func (o *outside) call(do func() error) error {
	if o.down.Load() {
		return external.Unreachable(errors.New("the registry answers 503"))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return do()
}

func (o *outside) put(key, settings string) error {
	return o.call(func() error { o.entries[key] = settings; return nil })
}

// setUp adds a reconciler of Caches with one step, which keeps an entry for each Cache in the API.
func (o *outside) setUp(mgr ctrl.Manager) error {
	type cache = *storev1alpha1.Cache
	step := external.New(external.Resource[cache, string]{
		Record: func(c cache) *external.Record { return &c.Status.Registration },
		Key:    func(c cache) string { return client.ObjectKeyFromObject(c).String() },
		Observe: func(_ context.Context, _ client.Client, _ cache, ref external.Reference) (settings string, err error) {
			err = o.call(func() error {
				var exists bool
				if settings, exists = o.entries[ref.Key]; !exists {
					return external.ErrNotFound
				}
				return nil
			})
			return settings, err
		},
		Desired: func(_ context.Context, _ client.Client, c cache) (string, error) {
			return fmt.Sprint(c.Spec.Settings), nil
		},
		Differs: func(_ external.Reference, observed, desired string) bool { return observed != desired },
		Create: func(_ context.Context, _ client.Client, _ cache, ref external.Reference, desired string) (string, error) {
			return "", o.put(ref.Key, desired)
		},
		Update: func(_ context.Context, _ client.Client, _ cache, ref external.Reference, _, desired string) error {
			return o.put(ref.Key, desired)
		},
		Delete: func(_ context.Context, _ client.Client, _ cache, ref external.Reference) error {
			return o.call(func() error { delete(o.entries, ref.Key); return nil })
		},
	})
	return reconcile.For(mgr, reconcile.Named("registration", step).Finalizer("store.example.com/registration")).Complete()
}

// caches are the Caches of the scenario.
var caches = []string{"catalog", "search"}

func newCache(name string) *storev1alpha1.Cache {
	return &storev1alpha1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}}
}

// createCaches creates the Caches, and waits until the API outside has been called for each.
func (s *scenario) createCaches(ctx context.Context) error {
	for _, name := range caches {
		if err := s.user.Create(ctx, newCache(name)); err != nil {
			return err
		}
	}
	return s.shows(ctx, fmt.Sprintf(`count(opblocks_condition{kind="Cache", type="Ready"} == 1) == %d`, len(caches)))
}

// changeCaches changes the Caches while the API does not answer.
func (s *scenario) changeCaches(ctx context.Context) error {
	s.operator.outside.down.Store(true)
	change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"settings":{"maxmemory":"100mb"}}}`))
	for _, name := range caches {
		if err := s.user.Patch(ctx, newCache(name), change); err != nil {
			return err
		}
	}
	return errors.Join(s.shows(ctx, `opblocks_external_spared_servers == 1`),
		s.shows(ctx, fmt.Sprintf(`opblocks_external_waiting_objects{reason="unreachable"} == %d`, len(caches))))
}
