// Package plan decides what is done next to one live object: see [Decide] and its [Stages]. It also builds what is sent. It sends no
// request and remembers nothing.
package plan
