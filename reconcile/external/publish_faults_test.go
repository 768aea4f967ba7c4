//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package external_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// issuer is a fake API that returns a password only when it issues the password.
type issuer struct {
	*table
	passwords map[string]string // the valid password of each login
	issued    []string          // the names of all calls of Issue
	remembers bool              // if Issue is called again with the same name, it issues nothing and returns the same password
}

// publishing returns a resource that publishes the password of each account in a Secret.
func publishing(d *issuer, p *reconciletest.Process) external.Resource[*Account, entry] {
	r := resource(tableClient{d.table, p}, d.identity)
	if d.identity == external.ByToken {
		r.ID = func(e entry) string { return e.ID }
	}
	r.Publish = func(a *Account, state entry) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: a.Spec.Secret},
			Data:       map[string][]byte{"login": []byte(state.Login), "password": nil},
		}
	}
	r.Issue = func(ctx context.Context, _ client.Client, a *Account, ref external.Reference, state entry) (values map[string][]byte, err error) {
		err = p.Effect(ctx, "issue "+ref.Key, func() error {
			name := a.Status.Account.Issued
			if !d.remembers || !slices.Contains(d.issued, name) {
				d.issued = append(d.issued, name)
				d.passwords[state.Login] = fmt.Sprint("pass-", len(d.issued))
			}
			values = map[string][]byte{"password": []byte(d.passwords[state.Login])}
			return nil
		})
		return values, err
	}
	return r
}

// hasPassword returns a function that checks that there is only one Secret, and that it has the valid password of the account.
func hasPassword(name, login string) func(*reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var all corev1.SecretList
		if err := env.List(context.Background(), &all); err != nil {
			return err
		}
		if len(all.Items) != 1 || all.Items[0].Name != name {
			return fmt.Errorf("there is not only the Secret %s: %d", name, len(all.Items))
		}
		data, valid := all.Items[0].Data, env.External.(*issuer).passwords[login]
		if string(data["login"]) != login || valid == "" || string(data["password"]) != valid {
			return fmt.Errorf("the Secret has %q, and the password of %s is %q", data, login, valid)
		}
		return nil
	}
}

func hasNoSecret(env *reconciletest.Env) error {
	var all corev1.SecretList
	if err := env.List(context.Background(), &all); err != nil || len(all.Items) > 0 {
		return fmt.Errorf("there are %d Secrets, %w", len(all.Items), err)
	}
	return nil
}

// TestSecretSurvivesEveryFault publishes a password that the API returns only once. It runs each scenario with every fault
// at every point, except that the faults at the creation of an account with a Secret are tried only in the scenario "repaired".
func TestSecretSurvivesEveryFault(t *testing.T) {
	alice := newAccount(func(s *AccountSpec) { s.Secret = "first" })
	edit := func(change func(*AccountSpec)) reconciletest.Action {
		return reconciletest.Change(alice, func(a *Account) { change(&a.Spec) })
	}
	first := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	theirs := &corev1.Secret{ObjectMeta: first.ObjectMeta, Data: map[string][]byte{"login": []byte("theirs")}}
	lost := reconciletest.DoExternal("lose the account", func(d *issuer) error {
		delete(d.entries, "alice")
		return nil
	})
	var reports []*reconciletest.Report
	for name, tc := range map[string]struct {
		reason    string
		identity  external.Identity
		remembers bool
		actions   []reconciletest.Action
	}{
		"repaired": {
			"the password in the Secret is always the one that is valid", external.ByKey, true,
			[]reconciletest.Action{
				reconciletest.Create(alice).Then(hasPassword("first", "alice")),
				reconciletest.Change(first, func(s *corev1.Secret) { s.Data["password"] = []byte("other") }).Then(hasPassword("first", "alice")),
				reconciletest.Delete(first).Then(hasPassword("first", "alice")),
				reconciletest.Delete(alice).Then(hasNoSecret),
			},
		},
		"renamed": {
			"the former Secret goes, and so does the former account", external.ByKey, true,
			[]reconciletest.Action{
				reconciletest.Create(alice).WithoutFaults(),
				edit(func(s *AccountSpec) { s.Secret = "second" }).Then(hasPassword("second", "alice")),
				edit(func(s *AccountSpec) { s.Login = "bob" }).Then(hasPassword("second", "bob")),
			},
		},
		"lost": {
			"the account is created again, and has another password", external.ByKey, true,
			[]reconciletest.Action{reconciletest.Create(alice).WithoutFaults(), lost, reconciletest.Wait(25 * time.Minute).Then(hasPassword("first", "alice"))},
		},
		"token": {
			"the API gives the ID", external.ByToken, true,
			[]reconciletest.Action{reconciletest.Create(alice).Then(hasPassword("first", "alice")), reconciletest.Delete(alice).Then(hasNoSecret)},
		},
		"forgetful": {
			"the API takes no idempotency key: each single fault, and no pairs, since a former leader may issue last", external.ByKey, false,
			[]reconciletest.Action{
				reconciletest.Create(alice).Then(hasPassword("first", "alice")), reconciletest.Delete(first).Then(hasPassword("first", "alice")),
			},
		},
		"theirs": {
			"a Secret of somebody else stays as it is, until it goes", external.ByKey, true,
			[]reconciletest.Action{
				reconciletest.Create(theirs), reconciletest.Create(alice).Then(func(env *reconciletest.Env) error {
					var live corev1.Secret
					if err := env.Get(context.Background(), client.ObjectKeyFromObject(theirs), &live); err != nil || string(live.Data["login"]) != "theirs" {
						return fmt.Errorf("the Secret is %v, %w", live.Data, err)
					}
					return nil
				}),
				edit(func(s *AccountSpec) { s.Secret = "second" }).Then(func(env *reconciletest.Env) error {
					err := env.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "second"}, &corev1.Secret{})
					if apierrors.IsNotFound(err) {
						return fmt.Errorf("the other name is free: %w", err)
					}
					return err
				}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			s := scenario(tc.identity, nil, nil, tc.actions)
			s.Horizon = 0
			s.External = func() reconciletest.External {
				return &issuer{table: &table{identity: tc.identity, entries: map[string]entry{}}, passwords: map[string]string{}, remembers: tc.remembers}
			}
			s.Start = func(p *reconciletest.Process) error {
				return setUp(p.Manager(), publishing(p.External().(*issuer), p))
			}
			s.Ignore.Func = func(obj *unstructured.Unstructured) { // the passwords and the names of issues are random
				unstructured.RemoveNestedField(obj.Object, "status", "account", "issued")
				unstructured.RemoveNestedField(obj.Object, "status", "account", "published")
				unstructured.RemoveNestedField(obj.Object, "data", "password")
				unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
			}
			if tc.remembers {
				s.Options.Pairs = 20
			}
			reports = append(reports, reconciletest.Explore(t, s))
		})
	}
	reconciletest.AssertRole(t, "testdata/role.yaml", reports)
}
