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

// database is a MariaDB server, and who uses it.
type database struct {
	tour   *tour
	name   string
	server *mariadb.Server
}

// startDatabase starts a server, which goes with the control plane.
func (t *tour) startDatabase(name string) *database {
	d := &database{tour: t, name: name}
	if t.err != nil {
		return d
	}
	began := time.Now()
	if _, t.err = exec.LookPath("mariadb"); t.err != nil {
		t.err = fmt.Errorf("MariaDB's client is missing, `make mariadb` installs it where it may: %w", t.err)
		return d
	}
	if d.server, t.err = mariadb.Start(t.ctx); t.err == nil {
		t.databases = append(t.databases, d)
		t.succeeded(fmt.Sprintf("%s is up at %s: %s", name, d.server.Address(), d.server.Version()), began)
	}
	return d
}

// credentials writes what the operator logs in with to a folder that only this user can read.
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

// asRoot runs a statement as the server's owner, until its output is as expected.
func (d *database) asRoot(expected string, as func(output string) error, statement string) {
	if d.tour.err == nil {
		d.tour.untilOf("mariadb", mariadbClient, d.name+": "+expected, as, append(d.root(), "--execute="+statement)...)
	}
}

func (d *database) root() []string {
	return []string{"--no-defaults", "--socket=" + d.server.Socket(), "--user=root"}
}

// logIn logs in as a user does, and shows what this user may do.
func (d *database) logIn(user, password, expected string, as func(output string) error) {
	if d.tour.err != nil {
		return
	}
	host, port, _ := net.SplitHostPort(d.server.Address())
	d.tour.untilOf("mariadb", mariadbClient, d.name+": "+expected, as,
		"--no-defaults", "--host="+host, "--port="+port, "--user="+user, "--password="+password, "--execute=SHOW GRANTS")
}

// mariadbClient gives a server's refusal as output: that is what a user sees of it.
func mariadbClient(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "mariadb", args...).CombinedOutput()
	if _, refused := errors.AsType[*exec.ExitError](err); refused {
		err = ctx.Err()
	}
	return string(out), err
}
