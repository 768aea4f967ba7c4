//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// soundConcurrency are scenarios whose operators wait in a pass, or do something outside of their passes.
var soundConcurrency = map[string]soundScenario{
	"BlockingPass": {
		reason: "a pass may wait until the pods of the child are available, for a minute",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					d := deploymentOf(c, s)
					err := c.Get(ctx, client.ObjectKeyFromObject(d), &appsv1.Deployment{})
					if apierrors.IsNotFound(err) {
						err = c.Create(ctx, d)
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
						is := &appsv1.Deployment{}
						err := c.Get(ctx, client.ObjectKeyFromObject(d), is)
						return is.Status.AvailableReplicas == 1, client.IgnoreNotFound(err)
					})
					if err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
				}
			}, reconciletest.Create(shop()))
		},
	},
	"GoroutinesInAPass": {
		reason: "children are created at the same time, and the pass waits for all of them",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					errs := make([]error, len(s.Spec.Counters))
					var group sync.WaitGroup
					for i, name := range s.Spec.Counters {
						group.Go(func() {
							errs[i] = ensure(ctx, c, s, owned(c, s, name, map[string]string{"motto": s.Spec.Motto}))
						})
					}
					group.Wait()
					if err := errors.Join(errs...); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Counters = []string{"a", "b", "c"} })), changeMotto)
		},
	},
	"ChannelSource": {
		reason: "a goroutine asks for the price, which nothing in the cluster tells, and its event triggers a pass",
		scenario: func() reconciletest.Scenario {
			s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				events := make(chan event.GenericEvent)
				b.For(&Shop{}).WatchesRawSource(ctrlsource.Channel(events, &handler.EnqueueRequestForObject{}))
				if err := p.Manager().Add(manager.RunnableFunc(func(ctx context.Context) error {
					watchPrice(ctx, p, events)
					return nil
				})); err != nil {
					panic(err)
				}
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					now, err := priceOf(ctx, p)
					if err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, now))
				}}
			}, reconciletest.Create(shop()), reconciletest.DoExternal("raise the price", func(m *market) error {
				m.Price = "2 EUR"
				return nil
			}), reconciletest.Wait(30*time.Second))
			s.External = func() reconciletest.External { return &market{Price: "1 EUR"} }
			return s
		},
	},
	"TwoControllersByAnnotation": {
		reason: "one controller says by an annotation which motto it has printed, and the other one opens the shop of that motto",
		scenario: func() reconciletest.Scenario {
			const printed = "example.com/printed"
			return reconciletest.Scenario{
				Scheme: scheme, CRDs: []string{"testdata"},
				Start: func(p *reconciletest.Process) error {
					printer := &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
						if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil || s.Annotations[printed] == s.Spec.Motto {
							return ctrl.Result{}, err
						}
						metav1.SetMetaDataAnnotation(&s.ObjectMeta, printed, s.Spec.Motto)
						return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
					}}
					opener := &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
						if motto, ok := s.Annotations[printed]; !ok || motto != s.Spec.Motto {
							return ctrl.Result{}, nil
						}
						return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open: "+s.Spec.Motto))
					}}
					return errors.Join(
						ctrl.NewControllerManagedBy(p.Manager()).Named("printer").For(&Shop{}).Owns(&corev1.ConfigMap{}).Complete(printer),
						ctrl.NewControllerManagedBy(p.Manager()).Named("opener").For(&Shop{}).Complete(opener),
					)
				},
				Actions: []reconciletest.Action{reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "open" })), changeMotto},
			}
		},
	},
}

// market is a service outside of the cluster that has a price.
type market struct{ Price string }

func (m *market) State() any { return m.Price }

func priceOf(ctx context.Context, p *reconciletest.Process) (now string, err error) {
	err = p.Query(ctx, "price", func() error {
		now = p.External().(*market).Price
		return nil
	})
	return now, err
}

// watchPrice sends an event of the shop whenever the price has changed, until the context ends.
func watchPrice(ctx context.Context, p *reconciletest.Process, events chan<- event.GenericEvent) {
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
		now, err := priceOf(ctx, p)
		if err != nil || now == last {
			continue // it asks again ten seconds later
		}
		select {
		case <-ctx.Done():
			return
		case events <- event.GenericEvent{Object: shop()}:
			last = now
		}
	}
}
