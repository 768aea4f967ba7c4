package mariadb_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

const ownerVariable = "MARIADB_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) == "" {
		os.Exit(m.Run())
	}
	s, err := mariadb.Start(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(filepath.Dir(s.GeneralLog()))
	select {} // until the test kills this process
}

func start(t *testing.T, options ...mariadb.Option) *mariadb.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real MariaDB; run without -short")
	}
	began := time.Now()
	s, err := mariadb.Start(t.Context(), options...)
	require.NoError(t, err)
	t.Logf("MariaDB %s after %s", s.Version(), time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

func TestStartCancelled(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real MariaDB; run without -short")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := mariadb.Start(ctx)
	require.ErrorIs(t, err, context.Canceled)
	start(t) // the installation that was cancelled is repeated
}

func TestDownAndUp(t *testing.T) {
	s := start(t, mariadb.WithGeneralLog())
	require.NoError(t, s.CanLogIn(t.Context(), s.Admin()))
	root := s.OpenRoot()
	defer root.Close()
	_, err := root.Exec("CREATE DATABASE kept")
	require.NoError(t, err)

	require.NoError(t, s.Down())
	assert.ErrorContains(t, s.CanLogIn(t.Context(), s.Admin()), "connection refused")
	assert.ErrorContains(t, s.Down(), "MariaDB is down")
	require.NoError(t, s.Up(t.Context()))
	assert.NoError(t, s.CanLogIn(t.Context(), s.Admin()), "on the same port, with its accounts")
	_, err = root.Exec("USE kept")
	assert.NoError(t, err)

	log, err := os.ReadFile(s.GeneralLog())
	require.NoError(t, err)
	assert.Contains(t, string(log), "operator@127.0.0.1 on  using TCP/IP")
	assert.NotContains(t, string(log), "CREATE DATABASE", "the owner's statements stay out of it")
}

func TestFrozen(t *testing.T) {
	s := start(t)
	require.NoError(t, s.Freeze())
	var login sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	login.Go(func() {
		assert.ErrorIs(t, s.CanLogIn(ctx, s.Admin()), context.Canceled, "nobody answers")
	})
	cancel()
	login.Wait()
	require.NoError(t, s.Thaw())
	assert.NoError(t, s.CanLogIn(t.Context(), s.Admin()))
}

func TestRootIsNotLetInOverTCP(t *testing.T) {
	s := start(t)
	assert.Error(t, s.CanLogIn(t.Context(), mariadb.Credentials{User: "root"}))
}

func TestTLS(t *testing.T) {
	s := start(t, mariadb.WithTLS())
	for _, withCertificate := range []bool{false, true} {
		config := s.Login(s.Admin())
		var err error
		config.TLS, err = s.ClientTLS(withCertificate)
		require.NoError(t, err)
		connector, err := mysql.NewConnector(config)
		require.NoError(t, err)
		connection, err := connector.Connect(t.Context())
		require.NoError(t, err)
		assert.NoError(t, connection.Close())
	}
	assert.NoError(t, s.CanLogIn(t.Context(), s.Admin()), "without TLS")
}

func TestSQLMode(t *testing.T) {
	s := start(t, mariadb.WithSQLMode("ANSI_QUOTES,NO_BACKSLASH_ESCAPES"))
	root := s.OpenRoot()
	defer root.Close()
	var mode string
	require.NoError(t, root.QueryRow("SELECT @@sql_mode").Scan(&mode))
	assert.Equal(t, "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", mode)
}

func TestFailedStart(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real MariaDB")
	}
	_, err := mariadb.Start(t.Context(), mariadb.WithArgs("--no-such-option"))
	assert.ErrorContains(t, err, "start MariaDB: mariadb ended: exit status")
	assert.ErrorContains(t, err, "unknown option '--no-such-option'")
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := mariadb.Start(t.Context())
	assert.ErrorContains(t, err, "MariaDB is missing: install the packages mariadb-server-core and mariadb-client-core")
}

func TestNothingOutlivesAKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real MariaDB")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	owner := exec.Command(program)
	owner.Env = append(os.Environ(), ownerVariable+"=yes")
	stdout, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	t.Cleanup(func() { _ = owner.Wait() })
	folder, err := bufio.NewReader(stdout).ReadString('\n')
	folder = strings.TrimSpace(folder)
	assert.NoError(t, err)
	assert.Len(t, processesIn(t, folder), 1)

	require.NoError(t, owner.Process.Kill())
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoDirExists(c, folder)
		assert.Empty(c, processesIn(t, folder))
	}, 5*time.Minute, 10*time.Millisecond)
}

// processesIn finds the server by its folder, which its command line names.
func processesIn(t *testing.T, folder string) []string {
	t.Helper()
	out, err := exec.Command("pgrep", "-f", folder).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(out))
}
