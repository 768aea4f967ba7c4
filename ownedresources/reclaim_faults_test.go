//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestReclaimSurvivesEveryFault clears the managed fields of a child, as somebody may do. Then a field of the child is
// not desired any more. It must be removed, whatever fault occurs at whatever point. The test runs with a cache that
// keeps managed fields and with a cache that drops them.
func TestReclaimSurvivesEveryFault(t *testing.T) {
	child := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{}}
	}
	set := func() *ChildSet[*Shop] {
		return Ensure(Build(func(owner *Shop) *corev1.ConfigMap {
			built := child()
			for item := range strings.FieldsSeq(owner.Spec.Content) {
				key, value, _ := strings.Cut(item, "=")
				built.Data[key] = value
			}
			return built
		}))
	}
	for name, options := range map[string]cache.Options{"FullCache": {}, "CompactCache": reconcile.CacheOptions()} {
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, withShops(reconciletest.Scenario{
				Start: func(p *reconciletest.Process) error {
					return reconcile.For(p.Manager(options), reconcile.Named("settings", set())).Complete()
				},
				Actions: []reconciletest.Action{
					reconciletest.Create(newShop(withContent("a=1 b=2"))),
					changeShop(withContent("a=1 b=2 c=3")),
					reconciletest.Do("clear the managed fields", func(ctx context.Context, c client.Client) error {
						return c.Patch(ctx, child(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`)))
					}),
					changeShop(withContent("a=1 c=3")),
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
				Options: reconciletest.Options{SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.Conflict}}, // without its managed fields, the annotation of the other writer looks like ours
			}))
		})
	}
}
