// Package builtin has the built-in kinds of the server in memory, with their defaults and validation written by
// hand after those of the real API server: a file for each kind, or for a group of them. The file kinds.go has the
// table of all kinds.
package builtin
