package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

// database is a MariaDB server of the tour.
type database struct {
	tour   *tour
	name   string
	server *mariadb.Server
}

// startDatabase starts a server, which is stopped with the control plane.
func (t *tour) startDatabase(name string) *database {
	d := &database{tour: t, name: name}
	if t.err != nil {
		return d
	}
	began := time.Now()
	if _, t.err = exec.LookPath("mariadb"); t.err != nil {
		t.err = fmt.Errorf("MariaDB's client is missing; `make mariadb` tries to install it: %w", t.err)
		return d
	}
	if d.server, t.err = mariadb.Start(t.ctx); t.err == nil {
		t.databases = append(t.databases, d)
		t.printer.Succeeded(fmt.Sprintf("%s is up at %s: %s", name, d.server.Address(), d.server.Version()), began)
	}
	return d
}

// credentials writes the operator's user name and password to files that only the current user can read.
func (d *database) credentials() (folder string) {
	if d.tour.err != nil {
		return ""
	}
	folder = d.tour.file(d.name)
	admin := d.server.Admin()
	d.tour.err = errors.Join(os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "username"), []byte(admin.User), 0o600),
		os.WriteFile(filepath.Join(folder, "password"), []byte(admin.Password), 0o600))
	return folder
}

// asRoot runs a statement as root until check accepts its output.
func (d *database) asRoot(expected string, check func(output string) error, statement string) {
	if d.tour.err == nil {
		d.tour.untilOf("mariadb", mariadbClient, d.name+": "+expected, check, append(d.root(), "--execute="+statement)...)
	}
}

func (d *database) root() []string {
	return []string{"--no-defaults", "--socket=" + d.server.Socket(), "--user=root"}
}

// logIn logs in as a user, and prints the grants of the user.
func (d *database) logIn(user, password, expected string, check func(output string) error) {
	if d.tour.err != nil {
		return
	}
	host, port, _ := net.SplitHostPort(d.server.Address())
	d.tour.untilOf("mariadb", mariadbClient, d.name+": "+expected, check,
		"--no-defaults", "--host="+host, "--port="+port, "--user="+user, "--password="+password, "--execute=SHOW GRANTS")
}

// mariadbClient runs MariaDB's client. It returns an error of the server as output, since a user sees it as output.
func mariadbClient(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "mariadb", args...).CombinedOutput()
	if _, refused := errors.AsType[*exec.ExitError](err); refused {
		err = ctx.Err()
	}
	return string(out), err
}
