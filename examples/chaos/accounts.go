package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

// accounts are the DatabaseUsers of the users, each with a Secret for its password.
type accounts struct {
	*cluster
	namespace string
	want      map[string]account
	adopt     bool // accounts may be there whose DatabaseUsers are lost
}

type account struct {
	password   string
	privileges []any // on the database shop
}

func newAccounts(c *cluster) *accounts {
	return &accounts{cluster: c, namespace: "accounts", want: map[string]account{}}
}

func (a *accounts) names() []string { return slices.Sorted(maps.Keys(a.want)) }

func (a *accounts) put(ctx context.Context, name string, random *rand.Rand) error {
	w := account{password: fmt.Sprintf("p%d", random.Uint64()), privileges: []any{"SELECT"}}
	for _, privilege := range []string{"INSERT", "UPDATE", "DELETE"} {
		if random.IntN(2) == 0 {
			w.privileges = append(w.privileges, privilege)
		}
	}
	return a.set(ctx, name, w)
}

func (a *accounts) repeat(ctx context.Context, name string) error {
	return a.set(ctx, name, a.want[name])
}

func (a *accounts) kind() (kind schema.GroupVersionKind, namespace string) {
	return userv1alpha1.GroupVersion.WithKind("DatabaseUser"), a.namespace
}

func (a *accounts) set(ctx context.Context, name string, w account) error {
	if err := a.apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"namespace": a.namespace, "name": name},
		"stringData": map[string]any{"password": w.password},
	}); err != nil {
		return err
	}
	spec := map[string]any{
		"user": name, "password": map[string]any{"name": name, "key": "password"},
		"grants": []any{map[string]any{"privileges": w.privileges, "database": "shop"}},
	}
	if a.adopt {
		spec["adopt"] = true
	}
	err := a.apply(ctx, map[string]any{
		"apiVersion": userv1alpha1.GroupVersion.String(), "kind": "DatabaseUser",
		"metadata": map[string]any{"namespace": a.namespace, "name": name, "labels": map[string]any{"target": "chaos"}},
		"spec":     spec,
	})
	if err == nil {
		a.want[name] = w
	}
	return err
}

func (a *accounts) drop(ctx context.Context, name string) error {
	delete(a.want, name)
	return a.remove(ctx, userv1alpha1.GroupVersion.String(), "DatabaseUser", a.namespace, name)
}

// restored does what an administrator does for the accounts of DatabaseUsers that were created after the copy: it drops those that nobody wants
// any more, and allows to take over the others.
func (a *accounts) restored(ctx context.Context) error {
	a.adopt = true
	var objects userv1alpha1.DatabaseUserList
	if err := a.list(ctx, a.namespace, &objects); err != nil {
		return err
	}
	root := a.db.OpenRoot()
	defer root.Close()
	names, err := column(ctx, root, "SELECT User FROM mysql.user WHERE Host = '%'")
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, wanted := a.want[name]; wanted || slices.Contains(namesOf(objects.Items), name) {
			continue
		}
		if _, err := root.ExecContext(ctx, fmt.Sprintf("DROP USER '%s'@'%%'", name)); err != nil {
			return err
		}
	}
	return nil
}

// differences checks that each user can log in with the password and has the privileges, and that the only other
// accounts are the server's own.
func (a *accounts) differences(ctx context.Context) ([]string, error) {
	d := a.compare(a.namespace)
	var objects userv1alpha1.DatabaseUserList
	if err := a.list(ctx, a.namespace, &objects); err != nil {
		return nil, err
	}
	d.same("DatabaseUser", a.names(), namesOf(objects.Items))
	root := a.db.OpenRoot()
	defer root.Close()
	names, err := column(ctx, root, "SELECT User FROM mysql.user WHERE Host = '%'")
	if err != nil {
		return nil, err
	}
	d.same("account", a.names(), names)
	for _, name := range names {
		w, wanted := a.want[name]
		if !wanted {
			continue
		}
		if err := a.db.CanLogIn(ctx, mariadb.Credentials{User: name, Password: w.password}); err != nil {
			d.add("account %s: %v", name, err)
		}
		grants, err := column(ctx, root, fmt.Sprintf("SHOW GRANTS FOR '%s'@'%%'", name))
		if err != nil {
			return nil, err
		}
		var privileges []string
		for _, p := range w.privileges {
			privileges = append(privileges, p.(string))
		}
		expected := fmt.Sprintf("GRANT %s ON `shop`.* TO `%s`@`%%`", strings.Join(privileges, ", "), name)
		if len(grants) != 2 || grants[1] != expected { // the first is GRANT USAGE, for the account itself
			d.add("account %s has %q instead of %q", name, grants, expected)
		}
	}
	return d.found, nil
}

func column(ctx context.Context, db *sql.DB, query string) (values []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}
