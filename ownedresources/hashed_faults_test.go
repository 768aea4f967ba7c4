//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestHashedSurvivesEveryFault has children whose values the cache replaces by hashes, and an input that reads one of
// these children.
func TestHashedSurvivesEveryFault(t *testing.T) {
	const bound = 180 // bytes; more than the hashes of a Secret with two keys
	long := strings.Repeat("x", 2*bound)
	child := func() *corev1.ConfigMap { return contentConfigMap(newShop()) }
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start: func(p *reconciletest.Process) error {
			p.HashLargeValues(bound)
			secret := Build(contentSecret).Generate("password", 200)
			set := Ensure(Build(contentConfigMap), secret, BuildFrom(secret.Live(), copyOfPassword))
			return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", set)).Complete()
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(newShop(withContent(long))),
			reconciletest.Change(child(), func(m *corev1.ConfigMap) { m.Data["content"] = long + "by hand" }),
			reconciletest.Change(child(), func(m *corev1.ConfigMap) { m.Data["theirs"] = long }),
			changeShop(withContent(long + "2")),
			reconciletest.Delete(newShop()),
		},
		Ignore: reconciletest.Ignore{Fields: map[string][]string{"Secret": {"data.password"}, "ConfigMap": {"data.copy", "data.theirs"}}},
		Always: func(env *reconciletest.Env) error {
			var all corev1.ConfigMapList
			if err := env.List(context.Background(), &all); err != nil {
				return err
			}
			for _, m := range all.Items {
				for key, value := range m.Data {
					if strings.HasPrefix(value, "sha256:") {
						return fmt.Errorf("the value of %s in %s is a hash", key, m.Name)
					}
				}
			}
			return nil
		},
	}))
}

// copyOfPassword returns a ConfigMap with the password that an input has read from a Secret.
func copyOfPassword(owner *Shop, live *corev1.Secret) (*corev1.ConfigMap, error) {
	m := NewConfigMap(owner, map[string]string{"copy": string(live.Data["password"])})
	m.Name = "copy"
	return m, nil
}
