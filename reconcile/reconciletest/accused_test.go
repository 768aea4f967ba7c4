package reconciletest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// Children of a custom kind need its schema from the API server, whether they have a Go type or not.
func TestChildrenOfCustomKinds(t *testing.T) {
	sets := map[string]func() *ownedresources.ChildSet[*Shop]{
		"Typed": func() *ownedresources.ChildSet[*Shop] {
			return ownedresources.Ensure(ownedresources.Build(func(s *Shop) *Shop {
				if strings.HasSuffix(s.Name, "-branch") {
					return nil
				}
				return &Shop{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-branch"}, Spec: ShopSpec{Motto: s.Spec.Motto}}
			}))
		},
		"Untyped": func() *ownedresources.ChildSet[*Shop] {
			return ownedresources.Ensure(ownedresources.Build(func(s *Shop) *unstructured.Unstructured {
				if strings.HasSuffix(s.Name, "-branch") {
					return nil
				}
				branch := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"motto": s.Spec.Motto}}}
				branch.SetGroupVersionKind(shopVersion.WithKind("Shop"))
				branch.SetName(s.Name + "-branch")
				return branch
			}).Kind(shopVersion.WithKind("Shop")))
		},
	}
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			branch := shop(func(s *Shop) { s.Name = "web-branch" })
			s := ofSteps(nil,
				reconciletest.Create(shop()).Then(reconciletest.Ready(branch)),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }).Then(reconciletest.Ready(branch)),
				reconciletest.Delete(shop()))
			s.Start = func(p *reconciletest.Process) error {
				return reconcile.For(p.Manager(), reconcile.Named("branch", set())).Complete()
			}
			reconciletest.Explore(t, s)
		})
	}
}

// accountIn keeps a ServiceAccount in the namespace that the motto names. As long as that namespace does not exist, the API server refuses
// the ServiceAccount, and the operator retries with controller-runtime's backoff, up to 1000 seconds.
func accountIn(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Spec.Motto, Name: s.Name}}
	err := c.Get(ctx, client.ObjectKeyFromObject(account), account)
	if apierrors.IsNotFound(err) {
		err = c.Create(ctx, account)
	}
	return ctrl.Result{}, err
}

// The run waits for a retry that is due after a long time. If the scenario sets a shorter Horizon, the finding says that a retry was due.
func TestRetryAfterLong(t *testing.T) {
	s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		b.For(&Shop{})
		return &shopReconciler{p.Client(), accountIn}
	}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "shops" })), reconciletest.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shops"}}))
	report := reconciletest.Explore(t, s)
	assert.NotEmpty(t, report.Survived)
	s.Horizon = time.Minute
	report = reconciletest.ExploreQuietly(t, s)
	require.NotEmpty(t, report.Failures)
	assert.ErrorContains(t, report.Failures[0].Err, "the last pass over shop default/web failed, and its retry was still due when the operator counted as quiet")
}

// If an operator has a schedule, the finding tells its author of Horizon and Wait, and not of random values.
func TestScheduleIsNamed(t *testing.T) {
	s := passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		due := s.CreationTimestamp.Add(5 * time.Minute)
		if s.Status.LastSeen != nil {
			due = s.Status.LastSeen.Add(5 * time.Minute)
		}
		if now := time.Now(); now.Before(due) {
			return ctrl.Result{RequeueAfter: due.Sub(now)}, nil
		}
		s.Status.LastSeen, s.Status.Message = &metav1.Time{Time: due}, "report-"+due.UTC().Format("20060102-150405")
		return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
	})
	report := reconciletest.ExploreQuietly(t, s)
	require.NotEmpty(t, report.Failures)
	assert.ErrorContains(t, report.Failures[0].Err, "It does something at regular times, such as by a schedule, and the scenario's Horizon of 17m0s is longer than the time between them")
	assert.NotContains(t, report.Failures[0].Err.Error(), "heartbeat")
	assert.NotContains(t, report.Failures[0].Err.Error(), "random")
}

// PersistentVolumeClaims of a StatefulSet stay when the StatefulSet is deleted, by Kubernetes' default. If the StatefulSet is deleted
// before all claims are created, some are missing in the end.
func TestClaimsThatStay(t *testing.T) {
	labels := map[string]string{"app": "web"}
	s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		b.For(&Shop{}).Owns(&appsv1.StatefulSet{})
		return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
				Spec: appsv1.StatefulSetSpec{
					Replicas: new(int32(2)), ServiceName: s.Name, Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: "shop:1"}}}},
					VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
						AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
						Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
					}}},
				},
			}
			err := c.Get(ctx, client.ObjectKeyFromObject(set), &appsv1.StatefulSet{})
			if !apierrors.IsNotFound(err) || s.DeletionTimestamp != nil {
				return ctrl.Result{}, err
			}
			if err := controllerutil.SetControllerReference(s, set, c.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, c.Create(ctx, set)
		}}
	}, reconciletest.Create(shop()), reconciletest.Delete(shop()))
	report := reconciletest.Explore(t, s)
	assert.NotEmpty(t, report.Survived)
}
