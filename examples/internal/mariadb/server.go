package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// Server is a MariaDB server.
type Server struct {
	settings   settings
	supervisor *supervisor.Supervisor
	program    string // mariadbd
	account    string // the account of the operating system that the server runs as
	port       int
	version    string
	admin      Credentials
	authority  *authority

	mu      sync.Mutex
	process *supervisor.Process // nil while the server is down
}

// Start starts a server without databases, and returns when it answers. The context limits only the start. Stop the server with
// [Server.Stop].
func Start(ctx context.Context, options ...Option) (*Server, error) {
	s := &Server{admin: Credentials{User: "operator", Password: newPassword()}}
	for _, option := range options {
		option(&s.settings)
	}
	var err error
	if s.program, err = find(); err != nil {
		return nil, err
	}
	current, err := user.Current()
	if err != nil {
		return nil, err
	}
	s.account = current.Username
	if s.supervisor, err = supervisor.New(ctx); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start MariaDB: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	if s.settings.tls {
		if err := s.writeCertificates(); err != nil {
			return err
		}
	}
	if err := s.firstUp(ctx); err != nil {
		return err
	}
	return s.createAdmin(ctx)
}

// Stop stops the server and removes its files. It may be called twice.
func (s *Server) Stop() error { return s.supervisor.Stop() }

// Detach keeps the server running when this program ends. It then runs until the process whose id is returned gets a SIGTERM:
// `kill <pid>`.
func (s *Server) Detach() (pid int, err error) { return s.supervisor.PID(), s.supervisor.Detach() }

// Version returns the version of the server, such as 10.11.19-MariaDB.
func (s *Server) Version() string { return s.version }

// Address returns host:port. It stays the same after [Server.Up].
func (s *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Socket returns the path of the unix socket. Root logs in there without a password; no other user of this machine has access.
func (s *Server) Socket() string { return s.file("socket") }

// GeneralLog returns the path of the general log, to which the server writes every statement if it was started
// [WithGeneralLog]. Passwords in it are not masked.
func (s *Server) GeneralLog() string { return s.file("general.log") }

// file returns the path of a file in the server's folder.
func (s *Server) file(name string) string { return filepath.Join(s.supervisor.Folder(), name) }
