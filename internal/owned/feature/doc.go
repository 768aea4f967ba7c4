// Package feature makes the decisions of three options of a child: Generate, RunOnce and ExpandVolumes. Its functions send no request and
// keep no state. Except for random values, their results depend only on their arguments.
package feature
