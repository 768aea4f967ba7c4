// Package builtin has the built-in kinds of the server in memory: a file for each kind, or for a group of them. Their
// defaults and validation are written by hand, after the real API server. The file kinds.go has the table of all kinds.
package builtin
