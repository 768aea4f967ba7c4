package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/opblocks/opblocks/internal/controlplane/programs"
	"github.com/opblocks/opblocks/internal/controlplane/supervisor"
)

// Server is a MariaDB server.
type Server struct {
	settings   settings
	supervisor *supervisor.Supervisor
	program    string // mariadbd
	account    string // of the operating system, which the server runs as
	port       int
	version    string
	admin      Credentials
	authority  *authority

	mu      sync.Mutex
	process *supervisor.Process // nil while the server is down
}

// Start starts a server with no databases of its own and returns when it answers. The context bounds the start only; end
// the server with [Server.Stop].
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
	paths, err := programs.Ensure(ctx, "supervise")
	if err != nil {
		return nil, err
	}
	if s.supervisor, err = supervisor.New(paths["supervise"]); err != nil {
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

// Stop ends the server and removes its files. It may be called twice.
func (s *Server) Stop() error { return s.supervisor.Stop() }

// Detach leaves the server running when this program ends. It then lives until it is stopped by a SIGTERM to the process
// whose id is returned: `kill <pid>`.
func (s *Server) Detach() (pid int, err error) { return s.supervisor.PID(), s.supervisor.Detach() }

// Version is what the server says, such as 10.11.19-MariaDB.
func (s *Server) Version() string { return s.version }

// Address is host:port, the same after [Server.Up].
func (s *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Socket is the path of the unix socket, through which root is let in without a password, and nobody else gets.
func (s *Server) Socket() string { return s.file("socket") }

// GeneralLog is the path of the file to which the server writes every statement, in whole, if it was started
// [WithGeneralLog]. Passwords are not masked in it.
func (s *Server) GeneralLog() string { return s.file("general.log") }

// file is the path of a file in the server's folder.
func (s *Server) file(name string) string { return filepath.Join(s.supervisor.Folder(), name) }
