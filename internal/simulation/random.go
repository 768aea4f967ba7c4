package simulation

import "crypto/rand"

// seed is what the random values of a run are made of, from which package ownedresources makes passwords. A run with faults has
// that of the run without, so both have the same passwords until the fault. Runs without faults have different ones: what
// depends on chance is found by comparing them.
type seed [32]byte

// newSeed returns the seed of a run. refs is nil for a run without faults.
func newSeed(refs *references) (made seed) {
	if refs != nil {
		return refs.baseline.seed
	}
	_, _ = rand.Read(made[:]) // it never returns an error
	return made
}

// readRandom fills the bytes with the next random values of the run.
func (r *Run) readRandom(into []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.random.Read(into) // it never returns an error
}
