package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// APIs are the APIs of package fakeapi that the operator has called. The run's lock guards them.
type APIs struct {
	Prevented int // how many calls outages have prevented
	known     []outside.API
	outages   map[outside.API]time.Time // the end of each API's outage
}

// Add notes that the operator has called an API.
func (a *APIs) Add(api outside.API) {
	if !slices.Contains(a.known, api) {
		a.known = append(a.known, api)
	}
}

// BeginOutage begins an outage of an API.
func (a *APIs) BeginOutage(api outside.API, lasts time.Duration) {
	if a.outages == nil {
		a.outages = map[outside.API]time.Time{}
	}
	a.outages[api] = time.Now().Add(lasts)
}

// IsInOutage reports whether an outage prevents a call of an API now.
func (a *APIs) IsInOutage(api outside.API) bool { return time.Now().Before(a.outages[api]) }

// identities returns the IDs that the APIs have given to things. Each ID is followed by its replacement in states.
func (a *APIs) identities() (pairs []string) {
	for _, api := range a.known {
		pairs = append(pairs, api.Identities()...)
	}
	return pairs
}

// Identities is like identities. It takes the lock itself.
func (w *World) Identities() []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.APIs.identities()
}

// DuplicateError returns an error if the operator has created something twice outside of the cluster.
func (w *World) DuplicateError(action string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	var lines []string
	for _, api := range w.APIs.known {
		lines = append(lines, api.Twice()...)
	}
	if len(lines) == 0 || w.Failures.leavesOut(kinds.CreatesDuplicate) {
		return nil
	}
	return failure.Finding{Kind: kinds.CreatesDuplicate, Asked: true, Cause: "the same thing exists twice outside", Err: fmt.Errorf("after %q the same thing exists twice outside:\n  %s\n"+
		"Record what is to be created before it is created, and find it again by that: by its name, by a token, or by a tag", action, strings.Join(lines, "\n  "))}
}

// Orphans returns a line for each thing outside of the cluster whose object does not exist any more.
func (w *World) Orphans() (lines []string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	exists := func(id request.ObjectID) bool { return w.History.Present[id] != nil }
	for _, api := range w.APIs.known {
		lines = append(lines, api.Orphans(exists)...)
	}
	return lines
}

// OrphanError returns the finding that things are left outside of the cluster whose objects do not exist any more.
func OrphanError(action string, lines []string) error {
	return failure.Finding{Kind: kinds.LeavesOutside, Asked: true, Cause: "is left outside after the deletion", Err: fmt.Errorf("after %q this is left outside, and its object is deleted:\n  %s\n"+
		"Remove it before the finalizer is removed, and not before the API has confirmed that it is gone", action, strings.Join(lines, "\n  "))}
}
