// Package ledger is where accounts are kept.
package ledger

// Ledger is opened once.
type Ledger struct{ name string }

// Open opens a ledger.
func Open(name string) (*Ledger, error) { return &Ledger{name}, nil }
