package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// patience is the longest time to wait for an event. The machine may be busy.
const patience = 5 * time.Minute

// The namespaces of the scenario.
const (
	shop     = "shop"
	blog     = "blog"
	mirrored = "mirrored" // an admission policy replaces images in this namespace
	failing  = "failing"  // the API server cannot write Deployments in this namespace until the fault is removed
)

// scenario runs the operator of the example memcached on a real control plane, and lets a series of events happen to it. Its metrics are
// scraped all the time.
type scenario struct {
	user     client.Client
	metrics  *database
	faults   *faults
	operator *operator
	cp       *controlplane.ControlPlane
	rival    func() error // stops the writer of startRival
}

// startScenario starts the control plane and the operator. If tracing is nil, no spans are recorded.
func startScenario(ctx context.Context, tracing *tracing) (s *scenario, err error) {
	s = &scenario{metrics: newDatabase(), faults: &faults{}, rival: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	options := controlplane.Options{Controllers: true, CRDs: []string{"../../examples/memcached/config/crd/bases", "../../examples/cache/config/crd/bases"}}
	if s.cp, err = controlplane.Start(ctx, options); err != nil {
		return s, err
	}
	if s.user, err = client.New(s.cp.Config(), client.Options{Scheme: scheme}); err != nil {
		return s, err
	}
	for _, name := range []string{shop, blog, mirrored, failing} {
		if err := s.user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return s, err
		}
	}
	s.operator, err = startOperator(s.cp.Config(), s.faults, tracing, s.metrics)
	return s, err
}

// stop stops everything. It may be called twice.
func (s *scenario) stop() error {
	err := s.rival()
	s.rival = func() error { return nil }
	if s.operator != nil {
		err = errors.Join(err, s.operator.stop())
	}
	if s.cp != nil {
		err = errors.Join(err, s.cp.Stop())
	}
	return err
}

// play lets all events happen, with a pause after each. At its end shop/limits is stalled. shop/large, failing/reports and the Caches are
// not ready. blog/drafts is paused. The Service blog/contested is in a write loop. All other objects are ready.
func (s *scenario) play(ctx context.Context, pause time.Duration) error {
	events := []struct {
		what string
		do   func(ctx context.Context) error
	}{
		{"objects become ready", func(ctx context.Context) error {
			return errors.Join(s.create(ctx, shop, "sessions", "carts", "pages"), s.create(ctx, blog, "posts", "drafts", "contested"),
				s.ready(ctx, shop, "sessions", "carts", "pages"), s.ready(ctx, blog, "posts", "drafts", "contested"))
		}},
		{"objects that cannot become ready", func(ctx context.Context) error {
			limits := newMemcached(shop, "limits")
			limits.Spec.Resources = &cachev1.ResourceRequirements{ // the API server refuses these
				Requests: amount(corev1.ResourceMemory, "2Gi"), Limits: amount(corev1.ResourceMemory, "1Gi"),
			}
			large := newMemcached(shop, "large")
			large.Spec.Resources = &cachev1.ResourceRequirements{Requests: amount(corev1.ResourceCPU, "10k")}
			return errors.Join(s.user.Create(ctx, limits), s.user.Create(ctx, large),
				s.shows(ctx, `opblocks_condition{name="limits", type="Stalled"} == 1`), s.shows(ctx, `opblocks_condition{name="large", type="Ready"} == 0`))
		}},
		{"a paused object", func(ctx context.Context) error {
			return errors.Join(s.pause(ctx, blog, "drafts"), s.shows(ctx, `opblocks_condition{name="drafts", type="Paused"} == 1`))
		}},
		{"an admission plug-in", func(ctx context.Context) error {
			return errors.Join(s.replaceImages(ctx), s.create(ctx, mirrored, "images"), s.ready(ctx, mirrored, "images"),
				s.shows(ctx, `opblocks_settled_differences > 0`))
		}},
		{"another writer", func(ctx context.Context) (err error) {
			s.rival, err = s.startRival(ctx, blog, "contested")
			return errors.Join(err, s.shows(ctx, `opblocks_write_loop{name="contested"} == 1`))
		}},
		{"many objects come", func(ctx context.Context) error {
			return errors.Join(s.create(ctx, shop, many...), s.ready(ctx, shop, many...))
		}},
		{"an API outside of the cluster", s.createCaches},
		{"the API outside gives no answer", s.changeCaches},
		{"the API server fails", func(ctx context.Context) error {
			s.faults.failing.Store(true)
			return errors.Join(s.create(ctx, failing, "reports"), s.shows(ctx, `opblocks_step_results_total{result="failed"} > 3`),
				s.shows(ctx, `rest_client_requests_total{code="500"} > 3`))
		}},
		{"many objects go", func(ctx context.Context) error {
			return errors.Join(s.delete(ctx, shop, many...), s.shows(ctx, fmt.Sprintf(`absent(opblocks_condition{name="%s"})`, many[0])))
		}},
	}
	for _, event := range events {
		if err := event.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", event.what, err)
		}
		if err := s.wait(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// many are the names of objects that are created together and deleted together.
var many = func() (names []string) {
	for i := range 20 {
		names = append(names, fmt.Sprint("sale-", i))
	}
	return names
}()

// wait lets time pass, for a recorded run.
func (s *scenario) wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

func newMemcached(namespace, name string) *cachev1.Memcached {
	return &cachev1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: cachev1.MemcachedSpec{Size: 2},
	}
}

func (s *scenario) create(ctx context.Context, namespace string, names ...string) error {
	for _, name := range names {
		if err := s.user.Create(ctx, newMemcached(namespace, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) delete(ctx context.Context, namespace string, names ...string) error {
	for _, name := range names {
		if err := s.user.Delete(ctx, newMemcached(namespace, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) pause(ctx context.Context, namespace, name string) error {
	annotation := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"opblocks.dev/paused":"true"}}}`))
	return s.user.Patch(ctx, newMemcached(namespace, name), annotation)
}

// ready waits until the objects are ready.
func (s *scenario) ready(ctx context.Context, namespace string, names ...string) error {
	for _, name := range names {
		err := until(ctx, func(ctx context.Context) (bool, error) {
			m := newMemcached(namespace, name)
			err := s.user.Get(ctx, client.ObjectKeyFromObject(m), m)
			return err == nil && meta.IsStatusConditionTrue(m.Status.Conditions, "Ready"), err
		})
		if err != nil {
			return fmt.Errorf("%s/%s does not become ready: %w", namespace, name, err)
		}
	}
	return nil
}

// shows waits until a query has a result.
func (s *scenario) shows(ctx context.Context, query string) error {
	err := until(ctx, func(ctx context.Context) (bool, error) {
		result, err := s.metrics.at(ctx, query, time.Now())
		return len(result) > 0, err
	})
	if err != nil {
		return fmt.Errorf("%s has no result: %w", query, err)
	}
	return nil
}

func until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, done)
}

func amount(of corev1.ResourceName, quantity string) cachev1.ResourceList {
	return cachev1.ResourceList{of: {Quantity: resource.MustParse(quantity)}}
}
