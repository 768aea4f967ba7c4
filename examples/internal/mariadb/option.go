package mariadb

// Option says how the server runs.
type Option func(*settings)

type settings struct {
	tls  bool
	args []string
}

// WithSQLMode sets the mode in which sessions begin, such as "ANSI_QUOTES,NO_BACKSLASH_ESCAPES". Default: the server's.
func WithSQLMode(mode string) Option { return WithArgs("--sql-mode=" + mode) }

// WithGeneralLog lets the server log every statement from its start on; see [Server.GeneralLog]. The log can be switched by
// SET GLOBAL general_log.
func WithGeneralLog() Option { return WithArgs("--general-log") }

// WithTLS lets clients use TLS; see [Server.ClientTLS]. Those that do not are let in all the same.
func WithTLS() Option { return func(s *settings) { s.tls = true } }

// WithArgs adds arguments of mariadbd.
func WithArgs(args ...string) Option { return func(s *settings) { s.args = append(s.args, args...) } }
