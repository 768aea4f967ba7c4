// Package state compares the results of two runs of a simulation. [Of] returns the state of a run without everything that
// may differ between two runs with the same result. [Difference] describes where two states differ, and [ChangedFields]
// where two versions of an object do.
package state
