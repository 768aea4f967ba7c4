package reconciletest_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

const label = "example.com/open"

// countConfigs counts ConfigMaps in the status.
func countConfigs(ctx context.Context, c client.Client, s *Shop, counted func(*corev1.ConfigMap) bool, options ...client.ListOption) error {
	var all corev1.ConfigMapList
	if err := c.List(ctx, &all, options...); err != nil {
		return err
	}
	n := 0
	for i := range all.Items {
		if counted(&all.Items[i]) {
			n++
		}
	}
	if s.Status.Slot == n {
		return nil
	}
	s.Status.Slot = n
	return client.IgnoreNotFound(c.Status().Update(ctx, s))
}

// theShop enqueues the shop of the scenario.
func theShop() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(shop())}}
	})
}

func configMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

func isOpen(obj client.Object) bool { return obj.GetLabels()[label] != "" }

var faultyWiring = map[string]faulty{
	"MissingWatch": {
		reason: "a child that is deleted by hand is not created again",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				if b.For(&Shop{}); sound {
					b.Owns(&corev1.ConfigMap{})
				}
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, nil))
				}}
			}, reconciletest.Create(shop()), reconciletest.Delete(config("web")))
		},
		says: []string{"a watch is missing", "create ConfigMap default/web", "deleted ConfigMap default/web triggered no pass"},
	},
	"ListInAllNamespaces": {
		reason: "ConfigMaps of other namespaces are counted, and their events are of no use",
		scenario: func(sound bool) reconciletest.Scenario {
			foreign := config("foreign")
			foreign.Namespace = "kube-system"
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{}).Owns(&corev1.ConfigMap{})
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					var options []client.ListOption
					if sound {
						options = append(options, client.InNamespace(s.Namespace))
					}
					return ctrl.Result{}, countConfigs(ctx, c, s, func(*corev1.ConfigMap) bool { return true }, options...)
				}}
			}, reconciletest.Create(shop()), reconciletest.Create(foreign))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{
			"a pass over shop default/web lists ConfigMap in all namespaces: added ConfigMap kube-system/foreign triggered no pass",
			"one more pass still had to update Shop/status default/web", "(client.InNamespace)",
		},
		never: []string{"a watch is missing"},
	},
	"ListOfAllOwners": {
		reason: "the children of other shops are counted, and their events trigger passes over their owners only",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{}).Owns(&corev1.ConfigMap{})
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := ensure(ctx, c, s, owned(c, s, s.Name, nil)); err != nil {
						return ctrl.Result{}, err
					}
					counted := func(m *corev1.ConfigMap) bool { return !sound || metav1.IsControlledBy(m, s) }
					return ctrl.Result{}, countConfigs(ctx, c, s, counted, client.InNamespace(s.Namespace))
				}}
			}, reconciletest.Create(shop()), reconciletest.Create(shop(func(s *Shop) { s.Name = "zoo" })))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{
			"a pass over shop default/web lists ConfigMap of other objects too: added ConfigMap default/zoo triggered no pass",
			"List those of the object alone",
		},
		never: []string{"a watch is missing"},
	},
	"TimeOfEachPassUnwatched": {
		reason: "each pass writes the time, and no event of that triggers the next one, so that it is not seen",
		scenario: func(sound bool) reconciletest.Scenario {
			return byGeneration(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound && s.Status.LastSeen != nil {
						return ctrl.Result{}, nil
					}
					s.Status.LastSeen = new(metav1.Now())
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, reconciletest.Create(shop()))
		},
		kind:  reconciletest.Findings.DoesNotRest,
		says:  []string{"the operator does not rest", "status.lastSeen is the time of the pass"},
		never: []string{"a watch is missing"},
	},
	"PredicateSeesOnlyTheNewObject": {
		reason: "nothing is done for an object that does not match any more",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				filter := predicate.NewPredicateFuncs(isOpen)
				if sound {
					filter.UpdateFunc = func(e event.UpdateEvent) bool { return isOpen(e.ObjectOld) || isOpen(e.ObjectNew) }
				}
				b.For(&Shop{}, builder.WithPredicates(filter)).Owns(&corev1.ConfigMap{})
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if isOpen(s) {
						return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, nil))
					}
					is := config(s.Name)
					if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, is))
				}}
			}, reconciletest.Create(shop(func(s *Shop) { s.Labels = map[string]string{label: "yes"} })),
				reconciletest.Change(shop(), func(s *Shop) { s.Labels = nil }))
		},
		says: []string{"a watch is missing", "delete ConfigMap default/web", "modified Shop default/web"},
	},
	"UpdatesFilteredOut": {
		reason: "an object that is deleted and created again while the watch is broken arrives as an update",
		scenario: func(sound bool) reconciletest.Scenario {
			s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{}).Watches(&corev1.ConfigMap{}, theShop(), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return sound }}))
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					from := source()
					if err := c.Get(ctx, client.ObjectKeyFromObject(from), from); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, open(ctx, c, s, from.Data["colour"])
				}}
			}, reconciletest.Create(shop()), reconciletest.Do("replace the source", func(ctx context.Context, c client.Client) error {
				if err := c.Delete(ctx, source()); err != nil {
					return err
				}
				anew := source()
				anew.Immutable, anew.Data["colour"] = new(true), "blue"
				return c.Create(ctx, anew)
			}))
			s.Objects = []client.Object{func() *corev1.ConfigMap { s := source(); s.Immutable = new(true); return s }()}
			return s
		},
		fault: reconciletest.Faults.MissedEvent,
		says:  []string{"missed event of: deleted ConfigMap default/source #1", `status.phase: "blue" without faults, "red" here`},
	},
	"EventOfMetadataAndReadOfWholeObject": {
		reason: "the read of a whole object starts a second informer, which may be behind the one that triggers the pass",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				if b.For(&Shop{}).Owns(&corev1.ConfigMap{}); sound {
					b.Watches(&corev1.ConfigMap{}, theShop())
				} else {
					b.WatchesMetadata(configMetadata(), theShop())
				}
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					from := source()
					if err := c.Get(ctx, client.ObjectKeyFromObject(from), from); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, open(ctx, c, s, from.Data["colour"])
				}}
			}, reconciletest.Create(shop()), reconciletest.Create(source()))
		},
		fault: reconciletest.Faults.StaleObjects,
		says:  []string{"stale objects after: added ConfigMap default/source #1"},
	},
	"EventOfWholeObjectAndReadOfMetadata": {
		reason: "the other way round, the informer of metadata may be behind",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				if b.For(&Shop{}).Watches(&corev1.ConfigMap{}, theShop()); sound {
					b.WatchesMetadata(configMetadata(), theShop())
				}
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					from := configMetadata()
					if err := c.Get(ctx, client.ObjectKeyFromObject(source()), from); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, open(ctx, c, s, from.Labels[label])
				}}
			}, reconciletest.Create(shop()), reconciletest.Create(source()),
				reconciletest.Change(source(), func(m *corev1.ConfigMap) { m.Labels = map[string]string{label: "yes"} }))
		},
		fault: reconciletest.Faults.StaleMetadata,
		says:  []string{"stale metadata after: modified ConfigMap default/source #1"},
	},
	"CacheHidesWhatIsRead": {
		reason: "the cache's selector leaves out an object that the operator reads by its name",
		scenario: func(sound bool) reconciletest.Scenario {
			s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				p.Manager(cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: labels.Set{label: "yes"}.AsSelector()}}})
				b.For(&Shop{}).Watches(&corev1.ConfigMap{}, theShop())
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					from := source()
					err := c.Get(ctx, client.ObjectKeyFromObject(from), from)
					if sound && err != nil {
						err = p.APIReader().Get(ctx, client.ObjectKeyFromObject(from), from)
					}
					if err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, open(ctx, c, s, from.Data["colour"])
				}}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{source()}
			return s
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{
			"the operator's cache hides ConfigMap default/source", "the cache's selector or namespaces leave it out",
			"give the object the labels that the selector asks for",
		},
	},
	"RequeueAfterBesideAnError": {
		reason: "controller-runtime ignores the delay",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
					from := source()
					err := c.Get(ctx, client.ObjectKeyFromObject(from), from)
					if err == nil {
						return ctrl.Result{}, nil
					}
					if sound {
						return ctrl.Result{RequeueAfter: time.Minute}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{RequeueAfter: time.Minute}, err
				}
			}, reconciletest.Create(shop()), reconciletest.Create(source()))
		},
		says: []string{"returns RequeueAfter 1m0s beside an error", "controller-runtime ignores the delay"},
	},
	"GoroutineLeft": {
		reason: "each pass leaves a goroutine behind",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
					news := make(chan string)
					if sound {
						return ctrl.Result{}, nil
					}
					go func() { <-news }()
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()))
		},
		says: []string{"a goroutine is left", "faulty_wiring_test.go", "chan receive"},
	},
	"Panic": {
		reason: "the cache does not show the child yet, and the pass takes the first of an empty list",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := ensure(ctx, c, s, owned(c, s, s.Name, nil)); err != nil {
						return ctrl.Result{}, err
					}
					var all corev1.ConfigMapList
					if err := c.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
						return ctrl.Result{}, err
					}
					if sound && len(all.Items) == 0 {
						return ctrl.Result{}, nil // its event will trigger another pass
					}
					return ctrl.Result{}, open(ctx, c, s, all.Items[0].Name)
				}
			}, reconciletest.Create(shop()))
		},
		says: []string{"panic in pass", "index out of range [0]"},
	},
}
