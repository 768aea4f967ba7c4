package mariadb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

const (
	program      = "mariadb"
	startTimeout = 5 * time.Minute // on a machine that is busy with other tests
	pollInterval = 10 * time.Millisecond
	portAttempts = 5
	shutdownTime = time.Minute
)

// find returns the path of mariadbd. It is often not in PATH, since users do not call it.
func find() (string, error) {
	_, err := exec.LookPath("mariadb-install-db")
	for _, path := range []string{"mariadbd", "/usr/sbin/mariadbd", "/usr/libexec/mariadbd"} {
		if found, notFound := exec.LookPath(path); err == nil && notFound == nil {
			return found, nil
		}
	}
	return "", errors.New("MariaDB is missing: install the packages mariadb-server-core and mariadb-client-core (Debian, Ubuntu), " +
		"mariadb-server (Fedora) or mariadb (Homebrew)")
}

// firstUp copies an installed database, chooses a free port and starts the server on it. It tries again if another process takes the
// port in between.
func (s *Server) firstUp(ctx context.Context) error {
	database, err := install(ctx, s.account)
	if err != nil {
		return err
	}
	if err := os.CopyFS(s.file("data"), os.DirFS(database)); err != nil {
		return err
	}
	for range portAttempts {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.Up(ctx); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Up starts the server again after [Server.Down], with its data and on the same port, and returns when it answers.
func (s *Server) Up(ctx context.Context) error {
	args := []string{"--no-defaults", "--user=" + s.account,
		"--datadir=" + s.file("data"), "--socket=" + s.Socket(), "--pid-file=" + s.file("pid"),
		fmt.Sprintf("--port=%d", s.port), "--bind-address=127.0.0.1",
		"--skip-name-resolve", // a login never waits for DNS
		"--general-log-file=" + s.GeneralLog(),
		"--debug-no-sync", "--skip-log-bin", logSize, "--innodb-buffer-pool-size=8M", "--innodb-fast-shutdown=2", "--performance-schema=off",
	}
	process, err := s.supervisor.Start(supervisor.Command{
		Name: program, Path: s.program, Args: append(args, s.settings.args...),
		Env: []string{"TMPDIR=" + s.supervisor.Folder()}, // a server that starts removes the files of others in a shared folder
	})
	if err != nil {
		return err
	}
	if err := s.answers(ctx, process); err != nil {
		return errors.Join(err, process.Kill())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = process
	return nil
}

// answers waits until a session can be opened. It is certainly this server's: the socket is in its own folder.
func (s *Server) answers(ctx context.Context, process *supervisor.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	root := s.OpenRoot()
	defer root.Close()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		err := root.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-process.Done():
			return process.Err()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; the last lines of its log:\n%s", ctx.Err(), err, process.Tail())
		}
	}
}

// Down stops the server and keeps its data. Open connections break, and new ones are refused.
func (s *Server) Down() error {
	process, err := s.signal(syscall.SIGTERM)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = nil
	s.mu.Unlock()
	select {
	case <-process.Done():
		return nil
	case <-time.After(shutdownTime):
		return process.Kill()
	}
}

// Freeze suspends the process until [Server.Thaw]: clients can connect, but get no answer.
func (s *Server) Freeze() error {
	_, err := s.signal(syscall.SIGSTOP)
	return err
}

// Thaw ends [Server.Freeze].
func (s *Server) Thaw() error {
	_, err := s.signal(syscall.SIGCONT)
	return err
}

func (s *Server) signal(signal syscall.Signal) (*supervisor.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil, errors.New("MariaDB is down")
	}
	if err := s.process.Err(); err != nil {
		return nil, err
	}
	return s.process, os.NewSyscallError("kill", syscall.Kill(s.process.PID(), signal))
}
