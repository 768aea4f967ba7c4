//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// byHand is the reconciler of the guide before it uses any block. It has the usual faults of one, see TestByHand.
type byHand struct{ client.Client }

func (r *byHand) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &Shop{}
	if err := r.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		d.Spec = deployment(s).Spec
		return controllerutil.SetControllerReference(s, d, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}

	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, svc, func() error {
		svc.Spec.Selector, svc.Spec.Ports = service(s).Spec.Selector, service(s).Spec.Ports
		return controllerutil.SetControllerReference(s, svc, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}

	s.Status.ReadyReplicas = d.Status.ReadyReplicas
	s.Status.ObservedGeneration = s.Generation
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue, Reason: "Created", ObservedGeneration: s.Generation,
	})
	return ctrl.Result{}, r.Status().Update(ctx, s)
}

func (r *byHand) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Shop{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).Complete(r)
}

// SetupShop adds the controller of the guide to a manager, as it is with blocks.
func SetupShop(mgr ctrl.Manager) error {
	return reconcile.For(mgr,
		reconcile.Named("workload", ownedresources.Ensure(
			ownedresources.Build(deployment),
			ownedresources.Build(service))).Reporting("Available"),
		reconcile.Named("status", reconcile.Func(recordReplicas)),
	).Complete()
}

// recordReplicas is all that is left of the status: the pass writes it, with the conditions and the observed generation.
func recordReplicas(ctx context.Context, c client.Client, s *Shop) error {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(s), d); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.Status.ReadyReplicas = d.Status.ReadyReplicas
	return nil
}

func deployment(s *Shop) *appsv1.Deployment {
	d := ownedresources.NewDeployment(s, nil, corev1.Container{
		Name: "shop", Image: s.Spec.Image, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	})
	d.Spec.Replicas = s.Spec.Replicas
	return d
}

func service(s *Shop) *corev1.Service {
	return ownedresources.NewService(s, nil, corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("http")})
}

// applying is the smallest change of byHand: it applies its children by a plain function.
type applying struct{ client.Client }

func (r *applying) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &Shop{}
	if err := r.Get(ctx, req.NamespacedName, s); err != nil || s.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	_, err := ownedresources.Apply(ctx, r.Client, s, deployment(s), service(s))
	return ctrl.Result{}, err
}

// actions returns the actions of the scenarios of all three reconcilers: everything that the operator reacts to.
func actions() []reconciletest.Action {
	named := metav1.ObjectMeta{Namespace: "default", Name: "web"}
	return []reconciletest.Action{
		reconciletest.Create(shop()),
		change(func(s *ShopSpec) { s.Replicas = new(int32(3)) }),
		reconciletest.Change(&appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "shop:0" }),
		reconciletest.Delete(&corev1.Service{ObjectMeta: named}),
		reconciletest.Delete(shop()),
	}
}

// TestByHand checks that an exploration of the reconciler that is written by hand says what the guide quotes.
func TestByHand(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start:   func(p *reconciletest.Process) error { return (&byHand{p.Client()}).SetupWithManager(p.Manager()) },
		Actions: actions(),
		Options: reconciletest.Options{Limit: 1},
	})
	if len(report.Failures) == 0 {
		t.Fatal("the exploration finds nothing")
	}
	if says := report.Failures[0].Err.Error(); !strings.Contains(read(t, "../../docs/guides/coming-from.md"), "```text\n"+says+"\n```") {
		t.Errorf("the guide does not quote what the exploration says: %s", says)
	}
}

func TestShopSurvivesEveryFault(t *testing.T) {
	explore(t, SetupShop, actions()...)
}

func TestApplySurvivesEveryFault(t *testing.T) {
	explore(t, func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Shop{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
			Complete(&applying{mgr.GetClient()})
	}, actions()...)
}
