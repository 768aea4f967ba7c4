//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// seenValues are the generated values that were seen so far, by the UID of the Secret. Somebody may already use them.
type seenValues map[types.UID]seenSecret

type seenSecret struct {
	rotated, password, cookie string
	passwords                 int
}

func (seenValues) State() any { return nil } // the scenario compares only the objects

// observe returns an error if a value was replaced although no rotation was asked for.
func (s seenValues) observe(secret *corev1.Secret) error {
	now := seenSecret{secret.Annotations[record.Rotated], string(secret.Data["password"]), string(secret.Data["cookie"]), 1}
	before, known := s[secret.UID]
	switch {
	case len(now.password) != 24 || len(now.cookie) != 32:
		return fmt.Errorf("values of %d and %d characters", len(now.password), len(now.cookie))
	case !known:
	case now.cookie != before.cookie:
		return errors.New("the cookie was replaced, which nobody has asked for")
	case now.password == before.password:
		now.passwords = before.passwords
	case now.rotated == before.rotated || before.passwords > 1:
		return errors.New("the password was replaced more often than somebody has asked for")
	default:
		now.passwords = before.passwords + 1
	}
	s[secret.UID] = now
	return nil
}

func TestGenerateSurvivesEveryFault(t *testing.T) {
	set := func() *ChildSet[*Shop] {
		return Ensure(Build(func(owner *Shop) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, StringData: map[string]string{"username": owner.Spec.Content}}
		}).Generate("password", 24, func(owner *Shop) string { return owner.Spec.Rotate }).Generate("cookie", 32))
	}
	secret := &corev1.Secret{ObjectMeta: newShop().ObjectMeta}
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start: startSet(set),
		Actions: []reconciletest.Action{
			reconciletest.Create(newShop(withContent("ann"))),
			changeShop(withContent("bob")),
			changeShop(func(s *ShopSpec) { s.Rotate = "1" }),
			changeShop(func(s *ShopSpec) { s.Rotate = "" }),
			reconciletest.Change(secret, func(s *corev1.Secret) { delete(s.Data, "username") }),
			reconciletest.Delete(newShop()),
		},
		External: func() reconciletest.External { return seenValues{} },
		Always: func(env *reconciletest.Env) error {
			var live corev1.Secret
			if err := env.Get(context.Background(), client.ObjectKeyFromObject(secret), &live); err != nil {
				return client.IgnoreNotFound(err)
			}
			return env.External.(seenValues).observe(&live)
		},
		Ignore: reconciletest.Ignore{Fields: map[string][]string{"Secret": {"data.password", "data.cookie"}}}, // random values; observe checks their lengths
	}))
}
