// Package write sends all requests that write. It creates, applies, patches and deletes objects, takes over the fields that others have
// written, removes the fields that are not desired any more, and finds what contradicts an apply that was refused. It remembers nothing.
package write
