//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func settingsOf(*Shop) []types.NamespacedName { return []types.NamespacedName{{Name: "settings"}} }

// shopSet returns a set in which children depend on each other in all ways: a Deployment built from an input, a list of
// ConfigMaps created after it, and two ConfigMaps created after the list. One of the two is unstructured and built from the live
// Deployment. The other one is an apply configuration.
func shopSet() *ChildSet[*Shop] {
	settings := From(func(ctx context.Context, r client.Reader, owner *Shop) (string, error) {
		var read corev1.ConfigMap
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "settings"}, &read)
		return read.Data["image"], err
	}, Reads(&corev1.ConfigMap{}, settingsOf))
	server := BuildFrom(settings, func(owner *Shop, image string) (*appsv1.Deployment, error) {
		return NewDeployment(owner, nil, corev1.Container{Name: "server", Image: image}), nil
	}).KeepWhileMissing(func(live, desired *appsv1.Deployment) {
		desired.Spec.Template.Spec.Containers[0].Image = live.Spec.Template.Spec.Containers[0].Image
	})
	shards := BuildEach(func(owner *Shop) (all []*corev1.ConfigMap, err error) {
		for i := range owner.Spec.Shards {
			all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(owner.Name, "-", i)}})
		}
		return all, nil
	}).After(server)
	image := BuildFrom(server.Live(), func(owner *Shop, live *appsv1.Deployment) (*unstructured.Unstructured, error) {
		index := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"image": live.Spec.Template.Spec.Containers[0].Image}}}
		index.SetName(owner.Name + "-image")
		return index, nil
	}).Kind(corev1.SchemeGroupVersion.WithKind("ConfigMap")).After(shards)
	size := BuildApply(&corev1.ConfigMap{}, func(owner *Shop) (*corev1ac.ConfigMapApplyConfiguration, error) {
		return corev1ac.ConfigMap(owner.Name, owner.Namespace).WithData(map[string]string{"shards": fmt.Sprint(owner.Spec.Shards)}), nil
	}).After(shards)
	return Ensure(image, size, shards, server).RemoveInOrder()
}

// TestChildrenSurviveEveryFault tries the faults at the creation of a shop only in the scenario "Made", and the faults at its deletion in
// "Made" and "Lost". "Changed" leaves nothing else to clean up, so it does not delete the shop.
func TestChildrenSurviveEveryFault(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"image": "server:1"}}
	created, deleted := reconciletest.Create(newShop(withShards(2))), reconciletest.Delete(newShop())
	tests := map[string][]reconciletest.Action{
		"Made": {created, reconciletest.Create(settings), deleted},
		"Changed": {
			created.WithoutFaults(),
			reconciletest.Create(settings).WithoutFaults(),
			changeShop(withShards(3)),
			reconciletest.Change(settings, func(m *corev1.ConfigMap) { m.Data["image"] = "server:2" }),
			changeShop(withShards(1)),
		},
		"Lost": {
			created.WithoutFaults(),
			reconciletest.Create(settings).WithoutFaults(),
			reconciletest.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}),
			reconciletest.Delete(settings),
			deleted,
		},
	}
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, withShops(reconciletest.Scenario{Start: startSet(shopSet), Actions: actions}))
		})
	}
}

// If no event of the owner or of a child has come, the set would be skipped. A test calls the functions in any case, and
// reports a function that then builds another object.
func TestExplorationFindsImpureBuilders(t *testing.T) {
	calls := 0
	tests := map[string]struct {
		reason string
		build  func(*Shop) *corev1.ConfigMap
		want   string
	}{
		"Pure": {reason: "A pure function is left out without a finding.", build: func(owner *Shop) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}}
		}},
		"Impure": {
			reason: "A counter is a global.",
			build: func(owner *Shop) *corev1.ConfigMap {
				calls++
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"calls": fmt.Sprint(calls / 8)}}
			},
			want: "ConfigMap default/web: it is built in another way, although neither the owner, nor what an input reads, nor a child has changed",
		},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unrelated"}}
	var turns []reconciletest.Action
	for i := range 20 {
		turns = append(turns, reconciletest.Change(secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"turn": {byte(i)}} }))
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, withShops(reconciletest.Scenario{
				Objects: []client.Object{secret},
				Start: func(p *reconciletest.Process) error {
					return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", Ensure(Build(test.build)),
						reconcile.Watching(&corev1.Secret{}, func(context.Context, client.Reader, *corev1.Secret) []ctrl.Request {
							return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}}
						}))).Complete()
				},
				Actions: append([]reconciletest.Action{reconciletest.Create(newShop())}, turns...),
			}))
			if test.want == "" {
				require.Empty(t, report.Failures, test.reason)
				return
			}
			require.NotEmpty(t, report.Failures, test.reason)
			require.ErrorContains(t, report.Failures[0].Err, test.want)
		})
	}
}
