// Package mariadb starts a real MariaDB server on this machine, for tests and for the demo.
//
// [Start] takes about a second. The server listens on a free port of 127.0.0.1 and on a unix socket, and keeps its files
// in a temporary folder. It runs under package supervisor: when the program that started it ends, however that happens, the
// process ends and the files are removed. The server does not sync its files to the disk: nothing here needs that.
//
// There are two ways to log in: [Server.OpenRoot], through the socket, for what a test prepares and checks; and [Server.Admin],
// an account over TCP with the privileges that the operator needs, and no others.
package mariadb
