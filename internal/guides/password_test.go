//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// SetupPasswords adds a controller whose accounts have a password that the operator chooses.
func SetupPasswords(mgr ctrl.Manager, api accounts) error {
	password := ownedresources.Build(passwordSecret).Generate("password", 32)
	account := external.New(external.Resource[*Shop, account]{
		Record: func(s *Shop) *external.Record { return &s.Status.Account },
		Key:    ownerOf,
		Observe: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) (account, error) {
			return api.Get(ctx, ref.Key)
		},
		Desired: func(ctx context.Context, c client.Client, s *Shop) (account, error) {
			value, _, err := secrets.Read(ctx, c, s.Namespace, passwordOf(s))
			return account{Owner: ownerOf(s), Token: value}, err
		},
		Version: func(ctx context.Context, c client.Client, s *Shop) (string, error) {
			return secrets.Version(ctx, c, s.Namespace, passwordOf(s))
		},
		Differs: func(_ external.Reference, observed, desired account) bool { return observed.Owner != desired.Owner },
		Create: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, desired account) (string, error) {
			return "", api.Create(ctx, ref.Key, desired)
		},
		Update: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, _, desired account) error {
			return api.Update(ctx, ref.Key, desired)
		},
		Delete: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) error {
			return api.Delete(ctx, ref.Key)
		},
		IsOurs: func(s *Shop, _ external.Reference, observed account) bool { return observed.Owner == ownerOf(s) },
	})
	return reconcile.For(mgr,
		reconcile.Named("password", ownedresources.Ensure(password)),
		reconcile.Named("account", account).Finalizer("shop.example.com/account").
			Reads(&corev1.Secret{}, func(s *Shop) []types.NamespacedName { return []types.NamespacedName{{Name: passwordOf(s).Name}} }),
	).Complete()
}

func passwordSecret(s *Shop) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-password"}}
}

func passwordOf(s *Shop) corev1.SecretKeySelector {
	return corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: s.Name + "-password"}, Key: "password"}
}

func TestPasswordsSurviveEveryFault(t *testing.T) {
	secret := passwordSecret(shop())
	secret.Namespace = "default"
	isAccepted := func(env *reconciletest.Env) error {
		var live corev1.Secret
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(secret), &live); err != nil {
			return err
		}
		found := env.External.(*passwords).Accounts["default/web"]
		if len(found.Token) == 0 || string(found.Token) != string(live.Data["password"]) {
			return errors.New("the account has another password than the Secret")
		}
		return nil
	}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &passwords{table{Accounts: map[string]account{}}} },
		Start: func(p *reconciletest.Process) error {
			return SetupPasswords(p.Manager(), tableClient{&p.External().(*passwords).table, p})
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(shop()).Then(isAccepted), reconciletest.Delete(secret).Then(isAccepted), reconciletest.Delete(shop()),
		},
		Ignore: reconciletest.Ignore{SecretValues: true, Fields: map[string][]string{"Shop": {"status.account.version"}}},
	})
}

// passwords is a table whose passwords differ between two runs.
type passwords struct{ table }

func (p *passwords) State() any { return fmt.Sprint(len(p.Accounts)) }

// table is a fake of the API for explorations. It survives the operator's process.
type table struct{ Accounts map[string]account }

func (d *table) State() any { return fmt.Sprintf("%q", d.tokens()) }

func (d *table) tokens() (all []string) {
	for name, a := range d.Accounts {
		all = append(all, name+" "+string(a.Token))
	}
	slices.Sort(all)
	return all
}

// tableClient is the client of a table in one process: faults happen at its calls.
type tableClient struct {
	*table
	process *reconciletest.Process
}

func (c tableClient) Get(ctx context.Context, name string) (found account, err error) {
	err = c.process.Query(ctx, "get "+name, func() error {
		var exists bool
		if found, exists = c.Accounts[name]; !exists {
			return external.ErrNotFound
		}
		return nil
	})
	return account{Owner: found.Owner}, err
}

func (c tableClient) Create(ctx context.Context, name string, a account) error {
	return c.process.Effect(ctx, "create "+name, func() error {
		if _, exists := c.Accounts[name]; exists {
			return external.ErrExists
		}
		c.Accounts[name] = a
		return nil
	})
}

func (c tableClient) Update(ctx context.Context, name string, a account) error {
	return c.process.Effect(ctx, "update "+name, func() error { c.Accounts[name] = a; return nil })
}

func (c tableClient) Delete(ctx context.Context, name string) error {
	return c.process.Effect(ctx, "delete "+name, func() error { delete(c.Accounts, name); return nil })
}
