// Package state compares what two runs of a simulation lead to. It returns the state of a run without everything that
// may differ between two runs with the same result, and prints where two states, or two versions of an object,
// differ.
package state
