// Package plan decides what is done next to one object: see [Decide] and its [Stages]. It also makes what is sent. It is
// pure: it sends no request and remembers nothing.
package plan
