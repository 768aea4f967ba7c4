package mariadb

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"sync"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// logSize is an argument of the server. By default each database has a log of 96 MB.
const logSize = "--innodb-log-file-size=8M"

// installation creates the file $3 at the end of a successful installation.
const installation = `mariadb-install-db --no-defaults --datadir="$1" --user="$2" --debug-no-sync ` + logSize + ` \
	--auth-root-authentication-method=normal --skip-test-db --skip-name-resolve && : > "$3"`

// installed returns the folder of a new database, which no server uses. Servers get copies of it: a copy takes a tenth of the processor
// time of an installation. It is removed when the process ends.
var installed = sync.OnceValues(func() (database string, err error) {
	current, err := user.Current()
	if err != nil {
		return "", err
	}
	s, err := supervisor.New(context.Background())
	if err != nil {
		return "", err
	}
	database, complete := filepath.Join(s.Folder(), "data"), filepath.Join(s.Folder(), "complete")
	process, err := s.Start(supervisor.Command{
		Name: "mariadb-install-db", Path: "/bin/sh", Args: []string{"-c", installation, "sh", database, current.Username, complete},
		Env: []string{"TMPDIR=" + s.Folder()},
	})
	if err != nil {
		return "", errors.Join(err, s.Stop())
	}
	<-process.Done()
	if _, err := os.Stat(complete); err != nil {
		return "", errors.Join(process.Err(), s.Stop())
	}
	return database, nil
})
