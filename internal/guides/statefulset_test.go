//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// +kubebuilder:rbac:groups=shop.example.com,resources=shops,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shop.example.com,resources=shops/status,verbs=patch
// +kubebuilder:rbac:groups=shop.example.com,resources=shops/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=services;secrets,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupDatabase adds the controller of the guide "I own a StatefulSet" to a manager.
func SetupDatabase(mgr ctrl.Manager) error {
	service := ownedresources.Build(databaseService)
	password := ownedresources.Build(databasePassword).Generate("password", 32)
	database := ownedresources.Build(databaseStatefulSet).ExpandVolumes().After(service, password)
	return reconcile.For(mgr,
		reconcile.Named("name", reconcile.Func(checkName)),
		reconcile.Named("database", ownedresources.Ensure(service, password, database)),
	).Complete()
}

// databaseService returns the headless Service by which each pod has a DNS name.
func databaseService(s *Shop) *corev1.Service {
	service := ownedresources.NewService(s, nil, corev1.ServicePort{Name: "redis", Port: 6379})
	service.Spec.ClusterIP = corev1.ClusterIPNone
	return service
}

// databasePassword returns the Secret whose key "password" is generated.
func databasePassword(s *Shop) *corev1.Secret {
	return ownedresources.NewSecret(s, nil)
}

func databaseStatefulSet(s *Shop) *appsv1.StatefulSet {
	set := ownedresources.NewStatefulSet(s, nil, corev1.Container{
		Name:  "redis",
		Image: "redis:7.4-alpine",
		Args:  []string{"--appendonly", "yes", "--dir", "/data", "--requirepass", "$(PASSWORD)"},
		Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: s.Name}, Key: "password",
		}}}},
		Ports:        []corev1.ContainerPort{{Name: "redis", ContainerPort: 6379}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	})
	set.Spec.Replicas = s.Spec.Replicas
	pod := set.Spec.Template.Spec.SecurityContext
	pod.RunAsUser, pod.FSGroup = new(int64(999)), new(int64(999)) // the image's user: a kubelet cannot check a name
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: *cmp.Or(s.Spec.Storage, new(resource.MustParse("1Gi"))),
			}},
		},
	}}
	return set
}

// checkName ends the pass if neither a StatefulSet nor a Service can have the name of the Shop.
func checkName(_ context.Context, _ client.Client, s *Shop) error {
	path := field.NewPath("metadata", "name")
	errs := append(ownedresources.ValidateName[appsv1.StatefulSet](s.Name, path), ownedresources.ValidateName[corev1.Service](s.Name, path)...)
	if len(errs) > 0 {
		return reconcile.Halt(reconcile.Stalled("InvalidName", fmt.Errorf("nothing is created: %w", errs.ToAggregate())))
	}
	return nil
}

func TestDatabaseSurvivesEveryFault(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	report := reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error { return SetupDatabase(p.Manager()) },
		Actions: []reconciletest.Action{
			reconciletest.Create(shop()),
			reconciletest.Change(shop(), func(s *Shop) { s.Spec.Replicas = new(int32(3)) }),
			reconciletest.Change(shop(), func(s *Shop) { s.Spec.Storage = new(resource.MustParse("2Gi")) }),
			reconciletest.Delete(set),
			reconciletest.Delete(shop()),
		},
		Options: reconciletest.Options{Limit: 100},
	})
	reconciletest.AssertRole(t, "testdata/rbac/role.yaml", []*reconciletest.Report{report},
		// A pod is deleted if the Shop is deleted while its StatefulSet is replaced.
		"delete pods",
		// Nobody edits Services and Secrets, and they are always wanted.
		"patch services", "delete services", "patch secrets", "delete secrets")
}

func TestDatabaseName(t *testing.T) {
	s := shop()
	for _, name := range []string{"web.shop", "1web"} {
		s.Name = name
		if checkName(t.Context(), nil, s) == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	s.Name = "web"
	if err := checkName(t.Context(), nil, s); err != nil {
		t.Error(err)
	}
}
