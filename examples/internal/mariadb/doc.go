// Package mariadb starts a real MariaDB server on this machine, for tests and for the demo.
//
// [Start] takes about a second. The server listens on a free port of 127.0.0.1 and on a unix socket, and keeps its files
// in a temporary folder. It runs under package supervisor: neither process nor file outlives the program that started it,
// however that ends. What it writes is not synced to the disk, which nothing here needs.
//
// There are two ways in: [Server.OpenRoot], through the socket, for what a test sets up and checks; and [Server.Admin],
// an account that may do over TCP what the operator needs to do, and no more.
package mariadb
