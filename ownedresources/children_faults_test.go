package ownedresources_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// pool owns the children of the scenario. Its minAvailable is the number of shards.
type pool = policyv1.PodDisruptionBudget

func settingsOf(*pool) []types.NamespacedName { return []types.NamespacedName{{Name: "settings"}} }

// poolSet is a set with everything that orders and feeds children: a Deployment built from an input, a list that comes after
// it, and a ConfigMap by apply configuration that comes after the list and is built from the Deployment's live object.
func poolSet() *ownedresources.ChildSet[*pool] {
	settings := ownedresources.From(func(ctx context.Context, r client.Reader, owner *pool) (string, error) {
		var read corev1.ConfigMap
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "settings"}, &read)
		return read.Data["image"], err
	}, ownedresources.Reads(&corev1.ConfigMap{}, settingsOf))
	server := ownedresources.BuildFrom(settings, func(owner *pool, image string) (*appsv1.Deployment, error) {
		return ownedresources.NewDeployment(owner, nil, corev1.Container{Name: "server", Image: image}), nil
	}, ownedresources.KeepWhileMissing(func(live, desired *appsv1.Deployment) {
		desired.Spec.Template.Spec.Containers[0].Image = live.Spec.Template.Spec.Containers[0].Image
	}))
	shards := ownedresources.BuildEach(func(owner *pool) (all []*corev1.ConfigMap, err error) {
		for i := range owner.Spec.MinAvailable.IntValue() {
			all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(owner.Name, "-", i)}})
		}
		return all, nil
	}).After(server)
	index := ownedresources.BuildApplyFrom(&corev1.ConfigMap{}, ownedresources.Live[*appsv1.Deployment](server),
		func(owner *pool, live *appsv1.Deployment) (*corev1ac.ConfigMapApplyConfiguration, error) {
			return corev1ac.ConfigMap(owner.Name, owner.Namespace).WithData(map[string]string{
				"image": live.Spec.Template.Spec.Containers[0].Image, "shards": owner.Spec.MinAvailable.String(),
			}), nil
		}).After(shards)
	return ownedresources.Ensure(index, shards, server).RemoveInOrder()
}

func TestChildrenSurviveEveryFault(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "default", Name: "pool"}
	owner := &pool{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"image": "server:1"}}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme.Scheme,
		Start: func(p *reconciletest.Process) error {
			return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", poolSet())).Complete()
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			reconciletest.Create(settings),
			reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(3)) }),
			reconciletest.Change(settings, func(m *corev1.ConfigMap) { m.Data["image"] = "server:2" }),
			reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(1)) }),
			reconciletest.Delete(settings),
			reconciletest.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool-0"}}),
			reconciletest.Delete(owner),
		},
	})
}

// A function that builds something else each time is found where a pass would be left out: no event of the owner or of a
// child has come.
func TestExplorationFindsImpureBuilders(t *testing.T) {
	calls := 0
	tests := map[string]struct {
		reason string
		build  func(*pool) *corev1.ConfigMap
		want   string
	}{
		"Pure": {reason: "A pure function is left out without a finding.", build: func(owner *pool) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}}
		}},
		"Impure": {
			reason: "A counter is a global.",
			build: func(owner *pool) *corev1.ConfigMap {
				calls++
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"calls": fmt.Sprint(calls / 8)}}
			},
			want: "ConfigMap default/pool: it is built in another way, although neither the owner nor an input nor a child has changed",
		},
	}
	named := metav1.ObjectMeta{Namespace: "default", Name: "pool"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unrelated"}}
	var turns []reconciletest.Action
	for i := range 20 {
		turns = append(turns, reconciletest.Change(secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"turn": {byte(i)}} }))
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, reconciletest.Scenario{
				Scheme: scheme.Scheme, Objects: []client.Object{secret},
				Start: func(p *reconciletest.Process) error {
					return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", ownedresources.Ensure(ownedresources.Build(test.build)),
						reconcile.Watching(&corev1.Secret{}, func(context.Context, client.Reader, *corev1.Secret) []ctrl.Request {
							return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "pool"}}}
						}))).Complete()
				},
				Actions: append([]reconciletest.Action{reconciletest.Create(&pool{ObjectMeta: named})}, turns...),
			})
			if test.want == "" {
				require.Empty(t, report.Failures, test.reason)
				return
			}
			require.NotEmpty(t, report.Failures, test.reason)
			require.ErrorContains(t, report.Failures[0].Err, test.want)
		})
	}
}
