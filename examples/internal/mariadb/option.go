package mariadb

// Option configures a server.
type Option func(*settings)

type settings struct {
	tls  bool
	args []string
}

// WithSQLMode sets the SQL mode of new sessions, such as "ANSI_QUOTES,NO_BACKSLASH_ESCAPES". Default: the server's.
func WithSQLMode(mode string) Option { return WithArgs("--sql-mode=" + mode) }

// WithGeneralLog turns the general log on, which contains every statement; see [Server.GeneralLog]. SET GLOBAL general_log
// turns it off and on later.
func WithGeneralLog() Option { return WithArgs("--general-log") }

// WithTLS allows clients to use TLS; see [Server.ClientTLS]. Connections without TLS are still accepted.
func WithTLS() Option { return func(s *settings) { s.tls = true } }

// WithArgs adds arguments of mariadbd.
func WithArgs(args ...string) Option { return func(s *settings) { s.args = append(s.args, args...) } }
