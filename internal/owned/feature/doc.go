// Package feature makes the decisions of three options of a child: Generate, RunOnce and ExpandVolumes. It is pure, except
// that it makes random values.
package feature
