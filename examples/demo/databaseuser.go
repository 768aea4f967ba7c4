package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	databaseuserFolder = "examples/databaseuser/config"
	databaseuserSample = databaseuserFolder + "/samples/mygroup_v1alpha1_databaseuser.yaml"
)

// databaseuser shows an account in a database from its creation to its deletion.
func databaseuser(t *tour) {
	t.title("databaseuser: two databases")
	t.say("This starts two MariaDB servers on this machine, each with a table and with an account for the operator.")
	shop, staging := t.startDatabase("shop"), t.startDatabase("staging")
	for _, d := range []*database{shop, staging} {
		d.asRoot("the table is created", nothing, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT)")
	}

	t.title("databaseuser: install the operator")
	t.kubectl("apply", "--server-side", "--kustomize", databaseuserFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(databaseuserFolder + "/crd/bases/*.yaml")
	t.say("The operator serves the DatabaseUsers with the label target: shop. It reads its user name and password from files; in a cluster these come from a Secret.")
	t.serveTarget(shop)

	t.title("databaseuser: create an account")
	t.kubectl("apply", "--filename", databaseuserSample)
	t.until("the account is provisioned", account("shop", "ProvisionSucceeded"), "get", "dbu")
	t.describe("the status and an event show what was done", contains("Password Version:"), contains("Normal"))
	shop.logIn("alice", "change-me", "alice has the grants of the spec, and no others", grants("SELECT, INSERT, UPDATE, DELETE ON `shop`.*"))

	t.title("databaseuser: change the password")
	t.kubectl("patch", "secret", "databaseuser-sample", "--patch", `{"stringData":{"password":"correct horse"}}`)
	shop.logIn("alice", "correct horse", "the new password works", contains("GRANT"))
	shop.logIn("alice", "change-me", "the old password is refused", refused)

	t.title("databaseuser: change the grants")
	t.say("The operator leaves a grant by somebody else alone.")
	shop.asRoot("EXECUTE is granted", nothing, "GRANT EXECUTE ON shop.* TO alice")
	t.setUser(`{"spec":{"grants":[{"privileges":["SELECT"],"database":"shop"},{"privileges":["INSERT","UPDATE"],"database":"shop","table":"orders"}]}}`)
	shop.logIn("alice", "correct horse", "what is no longer listed is revoked; EXECUTE is still granted",
		grants("SELECT, EXECUTE ON `shop`.*", "INSERT, UPDATE ON `shop`.`orders`"))

	t.title("databaseuser: a missing key in the Secret")
	t.setUser(`{"spec":{"password":{"key":"alice"}}}`)
	t.until("the reason is shown", account("shop", "SecretKeyNotFound"), "get", "dbu")
	t.describe("the message names the key", contains(`has no key "alice"`))
	shop.logIn("alice", "correct horse", "the account is unchanged", contains("GRANT"))
	t.say("When the Secret gets the key, the operator goes on by itself.")
	t.kubectl("patch", "secret", "databaseuser-sample", "--patch", `{"stringData":{"alice":"battery staple"}}`)
	t.until("the account is provisioned again", account("shop", "ProvisionSucceeded"), "get", "dbu")
	shop.logIn("alice", "battery staple", "the new password works", contains("GRANT"))

	movedAccount(t, shop, staging)
	foreignAccount(t, shop)

	t.title("databaseuser: delete the sample")
	t.kubectl("delete", "--filename", databaseuserSample)
	t.until("no DatabaseUser is left", nothing, "get", "dbu")
	shop.logIn("alice", "change-me", "alice cannot log in any more", refused)
	for _, d := range []*database{shop, staging} {
		d.asRoot("the account is dropped", nothing, "SELECT User, Host FROM mysql.user WHERE User = 'alice'")
	}
}

// movedAccount shows an account that moves to another database, and stays there when its object is deleted.
func movedAccount(t *tour, shop, staging *database) {
	t.title("databaseuser: move to another database")
	t.say("A second operator serves target: staging on the second server.")
	t.serveTarget(staging)
	t.kubectl("label", "dbu", "databaseuser-sample", "target=staging", "--overwrite")
	staging.logIn("alice", "battery staple", "the account exists here", grants("SELECT ON `shop`.*", "INSERT, UPDATE ON `shop`.`orders`"))
	shop.logIn("alice", "battery staple", "the account no longer exists here", refused)
	t.until("the account is provisioned", account("staging", "ProvisionSucceeded"), "get", "dbu")

	t.title("databaseuser: delete the object, and retain the account")
	t.setUser(`{"spec":{"deletionPolicy":"Retain"}}`)
	t.kubectl("delete", "dbu", "databaseuser-sample")
	t.until("no DatabaseUser is left", nothing, "get", "dbu")
	staging.logIn("alice", "battery staple", "alice can still log in", contains("GRANT"))
	t.say("Nothing manages this account any more.")
	staging.asRoot("the account is dropped", nothing, "DROP USER alice")
}

// foreignAccount shows an account that somebody has created by hand.
func foreignAccount(t *tour, shop *database) {
	t.title("databaseuser: an account of somebody else")
	shop.asRoot("the account is created by hand", nothing, "CREATE USER alice IDENTIFIED BY 'by hand'")
	t.kubectl("apply", "--filename", databaseuserSample)
	t.until("the reason is shown", account("shop", "AccountExists"), "get", "dbu")
	t.describe("the message says what to do", contains("set spec.adopt to take it over"))
	shop.logIn("alice", "by hand", "the account was left alone", contains("GRANT USAGE"))
	t.setUser(`{"spec":{"adopt":true}}`)
	t.until("the account is taken over", account("shop", "ProvisionSucceeded"), "get", "dbu")
	shop.logIn("alice", "by hand", "its old password is refused", refused)
	shop.logIn("alice", "change-me", "the password of the Secret works, and the grants are there", grants("SELECT, INSERT, UPDATE, DELETE ON `shop`.*"))
}

// serveTarget runs an operator for a database.
func (t *tour) serveTarget(d *database) {
	if folder := d.credentials(); t.err == nil {
		t.runOperator("databaseuser", "databaseuser-system", "databaseuser-controller-manager",
			"--target="+d.name, "--database-address="+d.server.Address(), "--database-credentials="+folder)
	}
}

// setUser patches the sample.
func (t *tour) setUser(patch string) {
	t.kubectl("patch", "dbu", "databaseuser-sample", "--type=merge", "--patch", patch)
}

// describe prints the status and the events of the sample.
func (t *tour) describe(expected string, checks ...func(string) error) {
	t.untilOf("kubectl", func(ctx context.Context, args ...string) (string, error) {
		out, err := t.cp.Kubectl(ctx, args...)
		_, status, _ := strings.Cut(out, "\nStatus:")
		return "…\nStatus:" + status, err
	}, expected, func(out string) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(out))
		}
		return errors.Join(errs...)
	}, "describe", "dbu", "databaseuser-sample")
}

// account checks for the table row of the sample with a target and a reason.
func account(target, reason string) func(string) error {
	row := "alice " + target + " False " + reason
	if reason == "ProvisionSucceeded" {
		row = "alice " + target + " True " + reason
	}
	return func(out string) error {
		return contains(row)(strings.Join(strings.Fields(out), " "))
	}
}

// grants checks for exactly these grants.
func grants(want ...string) func(string) error {
	return func(out string) error {
		if got := strings.Count(out, "GRANT ") - 1; got != len(want) { // GRANT USAGE stands for the account itself
			return fmt.Errorf("%d grants, want %d", got, len(want))
		}
		var errs []error
		for _, grant := range want {
			errs = append(errs, contains("GRANT "+grant+" TO `alice`@`%`")(out))
		}
		return errors.Join(errs...)
	}
}

func refused(out string) error { return contains("Access denied for user 'alice'")(out) }
