package mariadb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// logSize is an argument of the server. By default each database has a log of 96 MB.
const logSize = "--innodb-log-file-size=8M"

// installation is a shell script. It creates the file $3 at the end of a successful installation.
const installation = `mariadb-install-db --no-defaults --datadir="$1" --user="$2" --debug-no-sync ` + logSize + ` \
	--auth-root-authentication-method=normal --skip-test-db --skip-name-resolve && : > "$3"`

// installed is the folder of a new database, which no server uses; "" before it is installed. The folder is removed when this program
// ends.
var installed struct {
	sync.Mutex
	folder string
}

// install returns the folder of a new database. It installs one at the first call. Servers get copies of it: a copy takes a tenth of the
// processor time of an installation.
func install(ctx context.Context, account string) (folder string, err error) {
	installed.Lock()
	defer installed.Unlock()
	if installed.folder != "" {
		return installed.folder, nil
	}
	s, err := supervisor.New(ctx)
	if err != nil {
		return "", err
	}
	database, complete := filepath.Join(s.Folder(), "data"), filepath.Join(s.Folder(), "complete")
	process, err := s.Start(supervisor.Command{
		Name: "mariadb-install-db", Path: "/bin/sh", Args: []string{"-c", installation, "sh", database, account, complete},
		Env: []string{"TMPDIR=" + s.Folder()},
	})
	if err != nil {
		return "", errors.Join(err, s.Stop())
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), s.Stop())
	}
	if _, err := os.Stat(complete); err != nil {
		return "", errors.Join(process.Err(), s.Stop())
	}
	installed.folder = database
	return database, nil
}
