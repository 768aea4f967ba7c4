// Package feature has what single options of a child decide: Generate, RunOnce and ExpandVolumes. It is pure, except that it
// makes random values.
package feature
