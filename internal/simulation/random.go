package simulation

import "crypto/rand"

// seed determines the random values of a run, from which package ownedresources generates passwords. A run with faults has the
// seed of the run without faults, so both have the same passwords until a fault makes a difference. Each run without faults has
// a seed of its own: comparing two of them finds what depends on chance.
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
