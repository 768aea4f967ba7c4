//go:build !race

package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/accounts/accountstest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var (
	refusal = &accounts.StatementError{Number: 1044, State: "42000", Message: "Access denied"}
	down    = &accounts.UnreachableError{Address: "db:3306", Reason: "connection refused"}
)

// TestDoesWhatOthersLeaveToIt has accounts of others, other DatabaseUsers, another operator, and a server that refuses.
func TestDoesWhatOthersLeaveToIt(t *testing.T) {
	pair := rivals(false, [2]string{"first", "alice"}, [2]string{"second", "alice"})
	first, second := pair[0].(*userv1alpha1.DatabaseUser), pair[2].(*userv1alpha1.DatabaseUser)
	first.Spec.Grants, second.Spec.Grants, second.Spec.Hosts = nil, nil, []string{"10.%"}
	archived := plain()
	archived.Labels, archived.Finalizers = map[string]string{"target": "archive"}, []string{controller.Finalizer, "example.com/hold"}
	archived.Annotations = map[string]string{controller.AbandonAnnotation: "true"}
	former := recorded(plain(), "shop") // by a release that recorded a version only when it had succeeded
	former.Status.PasswordVersion = ""
	theirsOn := func(host string) string { return with(theirs, "%", host) }
	adopt := edit(func(s *spec) { s.Adopt = true })
	both, inserts := grants("SELECT on shop.* INSERT on shop.orders"), grants("INSERT on shop.orders")
	pending := func(reason string) string {
		return with(with(grants("SELECT on shop.*")(but(reason)), "pending []", "pending [%]"), "of the Secret", "")
	}
	tests := map[string]reconciletest.Scenario{
		"account": {External: holding("", "%"), Actions: []reconciletest.Action{
			reconciletest.Create(plain()).Then(is(nothing("AccountExists"), theirs)).Then(says("account 'alice'@'%' exists and was not made for this DatabaseUser")),
			database("lock", func(d *accountstest.Database) error { d.SetLocked(alice, true); return nil }),
			adopt.Then(is(nothing("AccountExists"), theirs)).Then(says("account 'alice'@'%' is locked")),
			database("unlock", func(d *accountstest.Database) error {
				d.SetLocked(alice, false)
				d.SetPowers(alice, "SUPER", "FILE", "PROCESS", "RELOAD")
				return nil
			}).
				Then(is(nothing("AccountExists"), theirs)).Then(says("has privileges beyond the use of databases: SUPER, FILE, PROCESS and 1 more; it is not taken over")),
			powers("%").Then(is(ready, ours)),
			reconciletest.Delete(sample()).Then(is()),
		}},
		"namesakes": {External: holding("", "1.%", "2.%", "3.%"), Actions: []reconciletest.Action{
			reconciletest.Create(plain()).Then(is(nothing("AccountExists"), theirsOn("1.%"), theirsOn("2.%"), theirsOn("3.%"))).
				Then(says("'alice'@'1.%', 'alice'@'2.%', 'alice'@'3.%', of the same user name")),
			powers("2.%", "SUPER"),
			adopt.Then(says("account 'alice'@'%' would have privileges of others, beyond the use of databases: SUPER of 'alice'@'2.%'; it is not created")),
			powers("2.%").Then(is(ready, ours, theirsOn("1.%"), theirsOn("2.%"), theirsOn("3.%"))),
			reconciletest.Delete(sample()).Then(is(theirsOn("1.%"), theirsOn("2.%"), theirsOn("3.%"))),
		}},
		"rivals": {Objects: []client.Object{pair[1], pair[3]}, External: holding(""), Actions: []reconciletest.Action{
			reconciletest.Create(first),
			reconciletest.Create(second).Then(is(of("first", ready), of("first", ours), of("second", nothing("AccountClaimed")))).
				Then(says("DatabaseUser default/first has the better claim to the user name\n")),
			reconciletest.Delete(first).Then(is(with(of("second", ready), "%", "10.%"), with(of("second", ours), "%", "10.%"))),
		}},
		"shared": {
			Objects:  []client.Object{pair[1], pair[3], recorded(first, "shop"), recorded(second, "shop")},
			External: holding("", "%", "10.%"),
			Actions: []reconciletest.Action{
				reconciletest.Change(second, func(u *userv1alpha1.DatabaseUser) { u.Spec.Hosts = []string{"10.%", "11.%"} }).
					Then(is(of("first", ready), of("first", ours), with(of("second", but("AccountClaimed")), "%", "10.%"), with(of("second", ours), "%", "10.%"))).
					Then(says("DatabaseUser default/first has the better claim to the user name\n")),
				reconciletest.Delete(first),
			},
		},
		"grants": {External: holding(""), Actions: []reconciletest.Action{
			reconciletest.Create(sample()),
			fail(refusal, "Grant", "Revoke"),
			grant(userv1alpha1.Grant{Database: "shop", Table: "orders", Privileges: []userv1alpha1.Privilege{"INSERT"}}).
				Then(is(both(but("ProvisionFailed")), grants("SELECT on shop.*")(ours))).
				Then(says("revoke SELECT on shop.*: the database refused: error 1044 (42000): Access denied", "grant INSERT on shop.orders: the database refused")),
			fail(nil),
			reconciletest.Change(sample(), request).Then(is(inserts(ready), inserts(ours))),
		}},
		"creation": {External: holding(""), Actions: []reconciletest.Action{
			fail(refusal, "Create"),
			reconciletest.Create(sample()).Then(is(pending("ProvisionFailed"))),
			fail(accounts.ErrExists, "Create").Then(is(pending("AccountExists"))).Then(says("account 'alice'@'%' cannot be created")),
			fail(nil).Then(is(grants("SELECT on shop.*")(ready), grants("SELECT on shop.*")(ours))),
		}},
		"abandoned": {External: holding(""), Actions: []reconciletest.Action{
			reconciletest.Create(plain()),
			reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) { u.Finalizers = append(u.Finalizers, "example.com/hold") }),
			fail(down, "Drop"),
			label("archive").Then(is(ready, ours)),
			label("").Then(is(but("DatabaseUnreachable"), ours)).Then(says("The user provisioning has failed: the database at db:3306 cannot be reached: connection refused")),
			label("shop").Then(is(ready, ours)),
			reconciletest.Delete(sample()).Then(is(but("DatabaseUnreachable"), ours)),
			abandon.Then(is(but("Abandoned"), ours)).Then(says("account alice on hosts % may still be there")).Then(tells("Warning Abandoned")),
			release.Then(is(ours)),
		}},
		"another operator": {
			Objects: []client.Object{recorded(plain(), "archive")}, External: holding("", "%"),
			Actions: []reconciletest.Action{
				reconciletest.Change(sample(), request).Then(is(with(but("WaitingForRelease"), "of the Secret", "1"), theirs)).
					Then(says(`the operator for target "archive" has yet to release the account`)),
				label("archive"),
				reconciletest.Delete(sample()).Then(is(with(but("WaitingForRelease"), "of the Secret", "1"), theirs)),
				abandon.Then(is(theirs)),
			},
		},
		"former release": {Objects: []client.Object{former}, External: holdingOurs, Actions: []reconciletest.Action{
			edit(func(s *spec) { s.Hosts = []string{"%", "10.%"} }).Then(is(but("AccountExists"), ours, theirsOn("10.%"))),
			reconciletest.Delete(sample()).Then(is(theirsOn("10.%"))),
		}},
		"former release that failed": {
			Objects: []client.Object{former}, External: holding("", "%"), Unready: []reconciletest.Unready{{Object: former, Reason: "AccountExists"}},
			Actions: []reconciletest.Action{
				reconciletest.Change(sample(), request).Then(is("sample: False AccountExists,  [], pending [], grants [], password ", theirs)),
				reconciletest.Delete(sample()).Then(is(theirs)),
			},
		},
		"no operator": {External: holding(""), Actions: []reconciletest.Action{
			reconciletest.Create(archived).Then(is("sample:  , nothing recorded")),
			reconciletest.Delete(sample()).Then(is("sample:  , nothing recorded")),
			release.Then(is()),
		}},
	}
	for name, scenario := range tests {
		t.Run(name, func(t *testing.T) { explore(t, scenario) })
	}
}

var abandon = reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) {
	u.Annotations = map[string]string{controller.AbandonAnnotation: "true"}
})

// release takes off the finalizer of another controller, after the operator has taken off its own.
var release = reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) {
	u.Finalizers = slices.DeleteFunc(u.Finalizers, func(f string) bool { return f == "example.com/hold" })
})

// recorded returns a DatabaseUser whose account another operator, or another release of this one, has made.
func recorded(u *userv1alpha1.DatabaseUser, target string) *userv1alpha1.DatabaseUser {
	u = u.DeepCopy()
	u.Finalizers = []string{controller.Finalizer}
	u.Status = userv1alpha1.DatabaseUserStatus{User: u.Spec.User, Hosts: u.Spec.Hosts, Target: target, PasswordVersion: "1"}
	if u.Spec.Hosts == nil {
		u.Status.Hosts = []string{"%"}
	}
	return u
}

// holdingOurs returns a database with the account of the sample, and one of somebody else.
func holdingOurs() reconciletest.External {
	s := holding("", "10.%")()
	create(s.(server).Database, alice, "correct horse battery")
	return s
}

// of returns a line of another DatabaseUser, or of its account. Its password is its name.
func of(name, line string) string {
	return strings.NewReplacer("sample", name, "correct horse battery", name).Replace(line)
}

func powers(host string, all ...string) reconciletest.Action {
	return database("set powers on "+host, func(d *accountstest.Database) error {
		d.SetPowers(accounts.Account{User: "alice", Host: host}, all...)
		return nil
	})
}

// fail makes methods of the database fail.
func fail(err error, methods ...string) reconciletest.Action {
	return database(fmt.Sprint("fail ", methods, err), func(d *accountstest.Database) error {
		d.Fail = func(method string) error {
			if slices.Contains(methods, method) {
				return err
			}
			return nil
		}
		return nil
	})
}

// tells returns a check that the operator has recorded an event.
func tells(event string) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		if !strings.Contains(env.Trace(), "event: "+event) {
			return fmt.Errorf("there is no event %s", event)
		}
		return nil
	}
}
