//go:build !race

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/accounts/accountstest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

type spec = userv1alpha1.DatabaseUserSpec

// The lines of the sample, and of the account alice.
const (
	ready  = "sample: True ProvisionSucceeded, alice [%], pending [], grants [], password of the Secret"
	ours   = `'alice'@'%': "correct horse battery" {none {0 0 0 0} } grants []`
	theirs = `'alice'@'%': "of somebody else" {none {0 0 0 0} } grants []`
)

// TestDoesWhatTheSpecSays runs more changes, and only without faults: nothing else in it can fail.
func TestDoesWhatTheSpecSays(t *testing.T) {
	another := with(ours, "correct horse battery", "another password")
	granted, both := grants("SELECT on shop.*"), grants("SELECT on shop.* SELECT on theirs.*") // the operator leaves what others have granted
	several, inserts := grants("SELECT, INSERT, UPDATE on shop.* DELETE on shop.orders"), grants("INSERT on shop.*")
	repair := []reconciletest.Action{
		reconciletest.Create(sample()).Then(is(granted(ready), granted(ours))),
		database("set the password", func(d *accountstest.Database) error { return d.SetPassword(t.Context(), alice, "by hand") }),
		reconciletest.Change(sample(), request).Then(is(granted(ready), granted(ours))),
		database("change all", func(d *accountstest.Database) error {
			return errors.Join(d.SetPassword(t.Context(), alice, "by hand"), d.SetSettings(t.Context(), alice, accounts.Settings{Require: "x509"}),
				d.Grant(t.Context(), alice, selectOn("theirs")), d.Revoke(t.Context(), alice, selectOn("shop")))
		}),
		reconciletest.Wait(70 * time.Minute).Then(is(granted(ready), both(ours))),
		database("lock", func(d *accountstest.Database) error { d.SetLocked(alice, true); return nil }),
		reconciletest.Wait(70 * time.Minute).Then(is(granted(but("AccountLocked")), both(ours))).Then(says("ask an administrator of the database to unlock it")),
		database("unlock", func(d *accountstest.Database) error { d.SetLocked(alice, false); return nil }).Then(is(granted(ready), both(ours))),
		database("drop", func(d *accountstest.Database) error { return d.Drop(t.Context(), alice) }),
		reconciletest.Wait(70 * time.Minute).Then(is(granted(ready), granted(ours))),
	}
	tests := map[string][]reconciletest.Action{
		"password": {
			reconciletest.Delete(secret("")),
			reconciletest.Create(plain()).Then(is(nothing("SecretNotFound"))),
			reconciletest.Create(secret("")).Then(is(nothing("PasswordEmpty"))),
			setPassword("correct horse battery").Then(is(ready, ours)),
			setPassword("another password").Then(is(ready, another)),
			edit(func(s *spec) { s.Password = nil }).Then(is(with(but("SecretNotFound"), "of the", "of no"), another)).Then(says("spec.password is missing")),
			reconciletest.Delete(sample()).Then(is()),
		},
		"grants": {
			reconciletest.Create(sample()),
			grant(shop("UPDATE", "INSERT"), userv1alpha1.Grant{Database: "shop", Table: "orders", Privileges: []userv1alpha1.Privilege{"DELETE"}}, shop("SELECT")).
				Then(is(several(ready), several(ours))),
			grant(shop("INSERT")).Then(is(inserts(ready), inserts(ours))),
			reconciletest.Do("change all", func(ctx context.Context, c client.Client) error {
				all := func(s *spec) { s.Require, s.Grants = userv1alpha1.RequireSSL, []userv1alpha1.Grant{shop("SELECT")} }
				return errors.Join(setPassword("another password").Do(ctx, c), edit(all).Do(ctx, c))
			}).Then(is(granted(ready), with(granted(another), "none", "ssl"))),
			reconciletest.Do("change all back", func(ctx context.Context, c client.Client) error {
				all := func(s *spec) { s.Require, s.Grants = "", []userv1alpha1.Grant{shop("INSERT")} }
				return errors.Join(setPassword("correct horse battery").Do(ctx, c), edit(all).Do(ctx, c))
			}),
			edit(func(s *spec) { s.User = "bob" }).
				Then(is(inserts(with(ready, "alice", "bob")), inserts(with(ours, "alice", "bob")))),
			grant().Then(is(with(ready, "alice", "bob"), with(ours, "alice", "bob"))),
		},
		"invalid": {
			reconciletest.Create(plain()),
			edit(func(s *spec) {
				s.User, s.Hosts = "root", []string{"%", "10.1.2.0/255.255.0.0"}
				s.Grants = []userv1alpha1.Grant{shop("SELECT"), {Privileges: []userv1alpha1.Privilege{"SELECT"}, Database: "#mysql50#shop"}}
			}).Then(is(but("ProvisionFailed"), ours)).
				Then(says("spec.user: the user name is root", "spec.hosts[1]: the host is not an IPv4 network", "spec.grants[1]: the database begins with #mysql50#")),
			reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) { u.Spec = plain().Spec }).Then(is(ready, ours)),
			setPassword("\xff").Then(is(with(but("ProvisionFailed"), "of the Secret", "outdated"), ours)),
			setPassword("another password").Then(is(ready, another)),
		},
		"repair": repair,
	}
	retaining := map[string][]reconciletest.Action{ // The deletion policy keeps the account in the end.
		"settings": {
			reconciletest.Create(plain()).Then(is(ready, ours)),
			edit(func(s *spec) {
				s.Require, s.Limits = userv1alpha1.RequireSSL, userv1alpha1.Limits{MaxUserConnections: 1, MaxConnectionsPerHour: 2, MaxQueriesPerHour: 3, MaxUpdatesPerHour: 4}
			}).Then(is(ready, with(ours, "none {0 0 0 0}", "ssl {1 2 3 4}"))),
			edit(func(s *spec) {
				s.Require, s.Limits, s.Hosts = "", userv1alpha1.Limits{}, []string{"LOCALHOST", "%", "localhost", "10.%"}
			}).Then(is(with(ready, "[%]", "[% 10.% localhost]"), ours, with(ours, "%", "10.%"), with(ours, "%", "localhost"))),
			edit(func(s *spec) { s.Hosts = []string{"10.%"} }).Then(is(with(ready, "[%]", "[10.%]"), with(ours, "%", "10.%"))),
			edit(func(s *spec) { s.User, s.Hosts = "bob", nil }).Then(is(with(ready, "alice", "bob"), with(ours, "alice", "bob"))),
			edit(func(s *spec) { s.DeletionPolicy = userv1alpha1.DeletionRetain }),
			reconciletest.Delete(sample()).Then(is(with(ours, "alice", "bob"))),
		},
		"release": {
			reconciletest.Create(plain()),
			label("archive").Then(is(nothing("Released"))).Then(says(`target "Shop" has released the account; the operator for "archive" makes it anew`)),
			label("SHOP").Then(is(ready, ours)),
			label("").Then(is(nothing("Released"))).Then(says("nobody serves this DatabaseUser")),
			label("shop"),
			edit(func(s *spec) { s.DeletionPolicy = userv1alpha1.DeletionRetain }),
			label("archive").Then(is(nothing("Released"), ours)),
			reconciletest.Delete(sample()).Then(is(ours)),
		},
	}
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) { explore(t, reconciletest.Scenario{Actions: actions, External: holding("")}) })
	}
	for name, actions := range retaining {
		t.Run(name, func(t *testing.T) {
			explore(t, reconciletest.Scenario{Actions: actions, External: holding(""), Options: reconciletest.Options{
				SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.LeavesOutside},
			}})
		})
	}
	t.Run("repair with a salt", func(t *testing.T) {
		explore(t, reconciletest.Scenario{Actions: repair, External: holding("caching_sha2_password")})
	})
}

// explore runs a scenario without faults. The Secret of the sample exists before.
func explore(t *testing.T, s reconciletest.Scenario) {
	t.Helper()
	s.Scheme, s.CRDs = runtime.NewScheme(), []string{"../config/crd/bases"}
	require.NoError(t, clientgoscheme.AddToScheme(s.Scheme))
	require.NoError(t, userv1alpha1.AddToScheme(s.Scheme))
	s.Objects = append(s.Objects, secret("correct horse battery"))
	s.Start = func(p *reconciletest.Process) error {
		operator := &controller.Operator{Database: connection{p.External().(server).Database, p}, Target: "Shop", Resync: time.Hour} // longer than the horizon: no resync hides a pass that has left something out
		return operator.SetupWithManager(p.Manager(controller.Cache()))
	}
	s.Options.WithoutFaults = true
	reconciletest.Explore(t, s)
}

// holding returns a database with accounts of others, on these hosts.
func holding(plugin string, hosts ...string) func() reconciletest.External {
	return func() reconciletest.External {
		d := &accountstest.Database{Plugin: plugin}
		for _, host := range hosts {
			create(d, accounts.Account{User: "alice", Host: host}, "of somebody else")
		}
		return server{d}
	}
}

// create creates an account before the scenario begins.
func create(d *accountstest.Database, a accounts.Account, password accounts.Password) {
	if err := d.Create(context.Background(), a, password, accounts.Settings{}); err != nil {
		panic(err)
	}
}

// plain is the sample without grants.
func plain() *userv1alpha1.DatabaseUser {
	u := sample()
	u.Spec.Grants = nil
	return u
}

func selectOn(database string) accounts.Grant {
	return accounts.Grant{Database: database, Privileges: []string{"SELECT"}}
}

func shop(privileges ...userv1alpha1.Privilege) userv1alpha1.Grant {
	return userv1alpha1.Grant{Database: "shop", Privileges: privileges}
}

func edit(change func(s *spec)) reconciletest.Action {
	return reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) { change(&u.Spec) })
}

func grant(all ...userv1alpha1.Grant) reconciletest.Action {
	return edit(func(s *spec) { s.Grants = all })
}

func label(target string) reconciletest.Action {
	return reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) { u.Labels = map[string]string{"target": target} })
}

func setPassword(to string) reconciletest.Action {
	return reconciletest.Change(secret(""), func(s *corev1.Secret) { s.Data["password"] = []byte(to) })
}

func database(name string, do func(d *accountstest.Database) error) reconciletest.Action {
	return reconciletest.DoExternal(name, func(s server) error { return do(s.Database) })
}

// nothing returns the line of the sample without an account.
func nothing(reason string) string { return "sample: False " + reason + ", nothing recorded" }

// but returns the line of the sample with another reason.
func but(reason string) string { return with(ready, "True ProvisionSucceeded", "False "+reason) }

func with(line, before, after string) string { return strings.Replace(line, before, after, 1) }

// grants returns a function that sets the grants in a line.
func grants(all string) func(line string) string {
	return func(line string) string { return with(line, "grants []", "grants ["+all+"]") }
}

// is returns a check of all DatabaseUsers and all accounts, each as a line.
func is(want ...string) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		now, err := users(env)
		if err != nil {
			return err
		}
		for account, state := range env.External.(server).State().(map[string]any) {
			s := state.([]any)
			now = append(now, fmt.Sprintf("%s: %q %v grants %v", account, s[2], s[0], s[1]))
		}
		slices.Sort(now)
		if want := slices.Sorted(slices.Values(want)); !slices.Equal(now, want) {
			return fmt.Errorf("there are\n%s\nand must be\n%s", strings.Join(now, "\n"), strings.Join(want, "\n"))
		}
		return nil
	}
}

// users returns a line for each DatabaseUser, with its status.
func users(env *reconciletest.Env) (lines []string, err error) {
	var all userv1alpha1.DatabaseUserList
	if err := env.List(context.Background(), &all); err != nil {
		return nil, err
	}
	for _, u := range all.Items {
		condition, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
		line := fmt.Sprintf("%s: %s %s, nothing recorded", u.Name, condition.Status, condition.Reason)
		if s := u.Status; s.User != "" || s.Hosts != nil || s.PendingHosts != nil || s.Grants != nil || s.Target != "" || s.PasswordVersion != "" {
			line = fmt.Sprintf("%s: %s %s, %s %v, pending %v, grants %v, password %s",
				u.Name, condition.Status, condition.Reason, s.User, s.Hosts, s.PendingHosts, applied(s.Grants), version(env, &u))
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func applied(recorded []userv1alpha1.AppliedGrant) (all []accounts.Grant) {
	for _, g := range recorded {
		all = append(all, accounts.Grant(g))
	}
	return all
}

// version returns whether the recorded version of the password is the version of the Secret.
func version(env *reconciletest.Env, u *userv1alpha1.DatabaseUser) string {
	var s corev1.Secret
	if u.Spec.Password == nil || env.Get(context.Background(), client.ObjectKey{Namespace: u.Namespace, Name: u.Spec.Password.Name}, &s) != nil {
		return "of no Secret"
	}
	if u.Status.PasswordVersion == fmt.Sprintf("%s/%s", s.UID, s.ResourceVersion) {
		return "of the Secret"
	}
	return u.Status.PasswordVersion
}

// says returns a check of the message of the condition Ready of all DatabaseUsers.
func says(parts ...string) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var all userv1alpha1.DatabaseUserList
		err := env.List(context.Background(), &all)
		messages := ""
		for _, u := range all.Items {
			condition, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
			messages += condition.Message + "\n"
		}
		for _, part := range parts {
			if !strings.Contains(messages, part) {
				err = errors.Join(err, fmt.Errorf("no condition says %q: %s", part, messages))
			}
		}
		return err
	}
}
