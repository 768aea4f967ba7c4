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

// databaseuser tells the life of an account in a database.
func databaseuser(t *tour) {
	t.title("databaseuser: two databases")
	t.say("MariaDB servers on this machine, with a table to grant something on, and with an account for the operator.")
	shop, staging := t.startDatabase("shop"), t.startDatabase("staging")
	for _, d := range []*database{shop, staging} {
		d.asRoot("the table is there", nothing, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT)")
	}

	t.title("databaseuser: install the operator")
	t.kubectl("apply", "--server-side", "--kustomize", databaseuserFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(databaseuserFolder + "/crd/bases/*.yaml")
	t.say("It serves the DatabaseUsers with the label target: shop. Its own name and password are in files; in a cluster these are a Secret, mounted into its pod.")
	t.serveTarget(shop)

	t.title("databaseuser: an account is made")
	t.kubectl("apply", "--filename", databaseuserSample)
	t.until("it succeeded", account("shop", "ProvisionSucceeded"), "get", "dbu")
	t.describe("status and event tell what was made", contains("Password Version:"), contains("Normal"))
	shop.logIn("alice", "change-me", "alice may do what was granted, and nothing else", grants("SELECT, INSERT, UPDATE, DELETE ON `shop`.*"))

	t.title("databaseuser: the password is rotated")
	t.kubectl("patch", "secret", "databaseuser-sample", "--patch", `{"stringData":{"password":"correct horse"}}`)
	shop.logIn("alice", "correct horse", "the new one works", contains("GRANT"))
	shop.logIn("alice", "change-me", "the old one does not", refused)

	t.title("databaseuser: the grants are changed")
	t.say("A grant that somebody else makes is left alone.")
	shop.asRoot("it is granted", nothing, "GRANT EXECUTE ON shop.* TO alice")
	t.setUser(`{"spec":{"grants":[{"privileges":["SELECT"],"database":"shop"},{"privileges":["INSERT","UPDATE"],"database":"shop","table":"orders"}]}}`)
	shop.logIn("alice", "correct horse", "what is no longer listed is revoked, the other's grant is there",
		grants("SELECT, EXECUTE ON `shop`.*", "INSERT, UPDATE ON `shop`.`orders`"))

	t.title("databaseuser: a key that the Secret does not have")
	t.setUser(`{"spec":{"password":{"key":"alice"}}}`)
	t.until("the reason is shown", account("shop", "SecretKeyNotFound"), "get", "dbu")
	t.describe("the message names it", contains(`has no key "alice"`))
	shop.logIn("alice", "correct horse", "the account is as it was", contains("GRANT"))
	t.say("Once the Secret has it, no more is needed.")
	t.kubectl("patch", "secret", "databaseuser-sample", "--patch", `{"stringData":{"alice":"battery staple"}}`)
	t.until("it is healed", account("shop", "ProvisionSucceeded"), "get", "dbu")
	shop.logIn("alice", "battery staple", "and that is the password", contains("GRANT"))

	t.title("databaseuser: moved to another database")
	t.say("A second operator serves target: staging, on the second server.")
	t.serveTarget(staging)
	t.kubectl("label", "dbu", "databaseuser-sample", "target=staging", "--overwrite")
	staging.logIn("alice", "battery staple", "the account is here", grants("SELECT ON `shop`.*", "INSERT, UPDATE ON `shop`.`orders`"))
	shop.logIn("alice", "battery staple", "and no longer there", refused)
	t.until("it succeeded", account("staging", "ProvisionSucceeded"), "get", "dbu")

	t.title("databaseuser: deleted, and the account retained")
	t.setUser(`{"spec":{"deletionPolicy":"Retain"}}`)
	t.kubectl("delete", "dbu", "databaseuser-sample")
	t.until("no DatabaseUser is left", nothing, "get", "dbu")
	staging.logIn("alice", "battery staple", "alice is let in", contains("GRANT"))
	t.say("From now on it is your own affair.")
	staging.asRoot("it is dropped", nothing, "DROP USER alice")

	t.title("databaseuser: an account that is somebody else's")
	shop.asRoot("it is made by hand", nothing, "CREATE USER alice IDENTIFIED BY 'by hand'")
	t.kubectl("apply", "--filename", databaseuserSample)
	t.until("the reason is shown", account("shop", "AccountExists"), "get", "dbu")
	t.describe("the message says what to do", contains("set spec.adopt to take it over"))
	shop.logIn("alice", "by hand", "it was left alone", contains("GRANT USAGE"))
	t.setUser(`{"spec":{"adopt":true}}`)
	t.until("it is taken over", account("shop", "ProvisionSucceeded"), "get", "dbu")
	shop.logIn("alice", "by hand", "with the password of the Secret: the old one is refused", refused)
	shop.logIn("alice", "change-me", "and with the grants", grants("SELECT, INSERT, UPDATE, DELETE ON `shop`.*"))

	t.title("databaseuser: the end")
	t.kubectl("delete", "--filename", databaseuserSample)
	t.until("no DatabaseUser is left", nothing, "get", "dbu")
	shop.logIn("alice", "change-me", "alice is refused", refused)
	for _, d := range []*database{shop, staging} {
		d.asRoot("there is no account", nothing, "SELECT User, Host FROM mysql.user WHERE User = 'alice'")
	}
}

// serveTarget runs an operator for a database.
func (t *tour) serveTarget(d *database) {
	if folder := d.credentials(); t.err == nil {
		t.runOperator("databaseuser", "databaseuser-system", "databaseuser-controller-manager",
			"--target="+d.name, "--database-address="+d.server.Address(), "--database-credentials="+folder)
	}
}

// setUser changes the sample.
func (t *tour) setUser(patch string) {
	t.kubectl("patch", "dbu", "databaseuser-sample", "--type=merge", "--patch", patch)
}

// describe shows the status and the events of the sample.
func (t *tour) describe(expected string, as ...func(string) error) {
	t.untilOf("kubectl", func(ctx context.Context, args ...string) (string, error) {
		out, err := t.cp.Kubectl(ctx, args...)
		_, status, _ := strings.Cut(out, "\nStatus:")
		return "…\nStatus:" + status, err
	}, expected, func(out string) error {
		var errs []error
		for _, check := range as {
			errs = append(errs, check(out))
		}
		return errors.Join(errs...)
	}, "describe", "dbu", "databaseuser-sample")
}

// account is a table row of the sample with this target and reason.
func account(target, reason string) func(string) error {
	row := "alice " + target + " False " + reason
	if reason == "ProvisionSucceeded" {
		row = "alice " + target + " True " + reason
	}
	return func(out string) error {
		return contains(row)(strings.Join(strings.Fields(out), " "))
	}
}

// grants are all of these, and none besides.
func grants(want ...string) func(string) error {
	return func(out string) error {
		if got := strings.Count(out, "GRANT ") - 1; got != len(want) { // GRANT USAGE stands for the account itself
			return fmt.Errorf("%d grants instead of %d", got, len(want))
		}
		var errs []error
		for _, grant := range want {
			errs = append(errs, contains("GRANT "+grant+" TO `alice`@`%`")(out))
		}
		return errors.Join(errs...)
	}
}

func refused(out string) error { return contains("Access denied for user 'alice'")(out) }
