package reconciletest_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// zoo returns a second shop, beside the shop of most scenarios.
func zoo() *Shop { return shop(func(s *Shop) { s.Name = "zoo" }) }

// shared returns the data of a child. Several shops want this child, each with its own name in the data.
func shared(s *Shop) map[string]string { return map[string]string{"of": s.Name} }

// faultyOwners are operators that do not check which owner a child belongs to, or leave a child behind.
var faultyOwners = map[string]faulty{
	"FirstWriterWins": {
		reason: "two shops claim the same children, the second takes those of the first for its own, and a crash mixes them",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					for _, name := range []string{"front", "back"} {
						if sound {
							name = s.Name + "-" + name
						}
						child := owned(c, s, name, shared(s))
						err := c.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{})
						if apierrors.IsNotFound(err) {
							err = client.IgnoreAlreadyExists(c.Create(ctx, child))
						}
						if err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(zoo()), reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.CrashDowntime,
		kind:  reconciletest.Findings.DependsOnTiming,
		says:  []string{`ConfigMap default/back: data.of: "zoo" without faults`},
	},
	"LastWriterWins": {
		reason: "two shops claim the same child, and each overwrites what the other has written",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := config("till")
					if sound {
						child.Name = s.Name
					}
					_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error {
						child.Data = shared(s)
						return controllerutil.SetOwnerReference(s, child, c.Scheme())
					})
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()), reconciletest.Create(zoo()))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{"it does not become quiet in 300 passes: update ConfigMap default/till", `data.of`},
	},
	"OneChildWithoutOwnerReference": {
		reason: "the garbage collector removes one child with its owner, and the children without the reference stay",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := ensure(ctx, c, s, owned(c, s, s.Name, nil)); err != nil {
						return ctrl.Result{}, err
					}
					for _, name := range s.Spec.Counters {
						child := config(name)
						if sound {
							child = owned(c, s, name, nil)
						}
						if err := client.IgnoreAlreadyExists(c.Create(ctx, child)); err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Counters = []string{"a", "b"} })), reconciletest.Delete(shop()))
		},
		fault: reconciletest.Faults.CrashDowntime,
		kind:  reconciletest.Findings.DependsOnTiming,
		says:  []string{"ConfigMap default/b: present without faults, absent if the operator starts late, absent here"},
	},
	"OwnerInAnotherNamespace": {
		reason: "an owner is looked for in the namespace of its child, so the garbage collector deletes the child at once",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := config(s.Name)
					if child.Namespace = "kube-system"; sound {
						child.Namespace = s.Namespace
					}
					child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, shopVersion.WithKind("Shop"))}
					err := c.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{})
					if apierrors.IsNotFound(err) {
						err = c.Create(ctx, child)
					}
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()))
		},
		says: []string{"create ConfigMap kube-system/web", "it does not become quiet"},
	},
	"ClusterRoleOfAnOldName": {
		reason: "a namespaced owner cannot own it, so the one of the old name stays when the field changes",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + s.Spec.Motto, Labels: map[string]string{"shop": s.Namespace + "-" + s.Name}}}
					if s.DeletionTimestamp != nil {
						err := client.IgnoreNotFound(c.Delete(ctx, role))
						if sound {
							err = deleteOtherRoles(ctx, p, c, s, "")
						}
						if err != nil {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if err := ensureFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					err := c.Get(ctx, client.ObjectKeyFromObject(role), &rbacv1.ClusterRole{})
					if apierrors.IsNotFound(err) {
						err = c.Create(ctx, role)
					}
					if err != nil || !sound {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, deleteOtherRoles(ctx, p, c, s, role.Name)
				}
			}, append(painted("red", "blue", "green"), reconciletest.Delete(shop()))...)
		},
		fault: reconciletest.Faults.ConcurrentAction,
		kind:  reconciletest.Findings.DependsOnTiming,
		says:  []string{"ClusterRole default-red: present without faults, absent if the operator starts late, absent here"},
	},
	"NamespaceMadeAgain": {
		reason: "an old cache shows a deleted shop, and an apply creates the namespace again that the cleanup has deleted",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound {
						if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
							return ctrl.Result{}, client.IgnoreNotFound(err)
						}
					}
					name := "shop-" + s.Name
					if s.DeletionTimestamp != nil {
						if !controllerutil.ContainsFinalizer(s, finalizer) {
							return ctrl.Result{}, nil
						}
						err := c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
						if client.IgnoreNotFound(err) != nil {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if err := ensureFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					if err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Apply(ctx, corev1ac.Namespace(name), client.FieldOwner("shop"), client.ForceOwnership)
				}
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.TimeTravel,
		says:  []string{"apply Namespace shop-web", "Namespace shop-web: absent without faults, present here"},
	},
	"TaintAfterTheJob": {
		reason: "after a crash the Job exists, and the node of somebody else is never tainted",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				taint := func(ctx context.Context, c client.Client) error {
					node := &corev1.Node{}
					if err := p.APIReader().Get(ctx, client.ObjectKey{Name: "node-1"}, node); err != nil {
						return err
					}
					if len(node.Spec.Taints) > 0 {
						return nil
					}
					node.Spec.Taints = []corev1.Taint{{Key: "example.com/shop", Effect: corev1.TaintEffectNoSchedule}}
					return c.Update(ctx, node)
				}
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound {
						if err := taint(ctx, c); err != nil {
							return ctrl.Result{}, err
						}
					}
					job := jobOf(c, s, s.Name)
					if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
						return ctrl.Result{}, err
					}
					if err := c.Create(ctx, job); err != nil || sound {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, taint(ctx, c)
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}
			return s
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"Node node-1: spec.taints"},
	},
}

// deleteOtherRoles deletes the ClusterRoles of the shop except the one with the name keep.
func deleteOtherRoles(ctx context.Context, p *reconciletest.Process, c client.Client, s *Shop, keep string) error {
	var roles rbacv1.ClusterRoleList
	if err := p.APIReader().List(ctx, &roles, client.MatchingLabels{"shop": s.Namespace + "-" + s.Name}); err != nil {
		return err
	}
	for i := range roles.Items {
		if roles.Items[i].Name == keep {
			continue
		}
		if err := c.Delete(ctx, &roles.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
