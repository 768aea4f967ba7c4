//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package ownedresources_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestReclaimSurvivesEveryFault drops a field of a child after somebody has cleared the child's managed fields, once
// for every fault at every point. The field must be removed each time, with a cache that keeps managed fields and with
// a compact one.
func TestReclaimSurvivesEveryFault(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	type budget = policyv1.PodDisruptionBudget
	owner := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{"a": "1", "b": "2"}}}
	child := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	}
	changeOwner := func(change func(annotations map[string]string)) reconciletest.Action {
		return reconciletest.Change(owner, func(b *budget) { change(b.Annotations) })
	}
	for name, options := range map[string]cache.Options{"FullCache": {}, "CompactCache": reconcile.CacheOptions()} {
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, reconciletest.Scenario{
				Scheme: scheme,
				Start: func(p *reconciletest.Process) error {
					return reconcile.For(p.Manager(options), reconcile.Named("settings", ownedresources.Ensure(
						ownedresources.Build(func(b *budget) *corev1.ConfigMap {
							c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{}}
							for _, key := range []string{"a", "b", "c"} {
								if value := b.Annotations[key]; value != "" {
									c.Data[key] = value
								}
							}
							return c
						})))).Complete()
				},
				Actions: []reconciletest.Action{
					reconciletest.Create(owner),
					changeOwner(func(annotations map[string]string) { annotations["c"] = "3" }),
					reconciletest.Do("clear the managed fields", func(ctx context.Context, c client.Client) error {
						return c.Patch(ctx, child(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`)))
					}),
					changeOwner(func(annotations map[string]string) { delete(annotations, "b") }),
				},
				Finally: func(env *reconciletest.Env) error {
					live := child()
					if err := env.Get(context.Background(), client.ObjectKeyFromObject(live), live); err != nil {
						return err
					}
					if d := cmp.Diff(map[string]string{"a": "1", "c": "3"}, live.Data); d != "" {
						return fmt.Errorf("the data are not as desired (-want, +got)\n%s", d)
					}
					return nil
				},
			}, reconciletest.SkipFaults(kinds.Conflict)) // nobody knows that the annotation of the other writer is not ours
		})
	}
}
