// Package write sends the requests of one write, and of what has to be done around it: take over the fields that others have
// written, remove the fields that are not desired any more, find what contradicts an apply that was refused. It remembers
// nothing.
package write
