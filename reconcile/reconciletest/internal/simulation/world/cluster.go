package world

import (
	"fmt"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// StepCluster lets the rest of the cluster take one step: what is outside of it, the simulated controllers, the other writer
// and the garbage collector. It reports whether something changed.
func (w *World) StepCluster() bool {
	before := w.Server.Revision()
	w.Mu.Lock()
	parts := w.Others.Parts()
	w.Mu.Unlock()
	moved := w.stepExternal()
	for _, c := range w.controllers {
		w.Mu.Lock()
		now := w.Moment()
		w.Mu.Unlock()
		if err := failure.Recover("it", func() error { return c.step(now) }); err != nil {
			w.Failures.Add(fmt.Errorf("a simulated controller: %w", err))
		}
	}
	w.Mu.Lock()
	w.Others.ForgetRemovedParts(parts)
	w.Others.ReleaseFinalizers()
	w.Mu.Unlock()
	w.Server.CollectGarbage()
	return moved || w.Server.Revision() != before
}

// stepExternal lets what is outside of the cluster take one step, and reports whether the step changed something. During the check that one
// more pass changes nothing, it does nothing: the check would blame the operator for the change.
func (w *World) stepExternal() bool {
	external, steps := w.External.(steppingExternal)
	if !steps || w.isProbing() {
		return false
	}
	changed := false
	err := failure.Recover("it", func() error {
		changed = external.Step()
		return nil
	})
	if err != nil {
		w.Failures.Add(fmt.Errorf("a step of the External: %w", err))
		return false
	}
	if changed {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		w.externalSteps++
	}
	return changed
}

// ExternalState returns the state outside of the cluster as JSON, "" if the scenario has no External.
func (w *World) ExternalState() string {
	if w.External == nil {
		return ""
	}
	return state.EncodeExternal(w.External.State())
}

// steppingExternal is an [External] that changes by itself.
type steppingExternal interface {
	External
	Step() bool
}

// External is what the operator changes outside of the cluster.
type External interface{ State() any }
