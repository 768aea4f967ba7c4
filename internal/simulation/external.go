package simulation

import "fmt"

// steppingExternal is an [External] that changes by itself.
type steppingExternal interface {
	External
	Step() bool
}

// stepExternal lets what is outside of the cluster take one step, and reports whether that changed something. It does
// nothing while checkRest runs, which would blame the operator for the change.
func (r *Run) stepExternal() bool {
	external, steps := r.external.(steppingExternal)
	if !steps || r.isProbing() {
		return false
	}
	changed := false
	err := recoverPanic("it", func() error {
		changed = external.Step()
		return nil
	})
	if err != nil {
		r.fail(fmt.Errorf("a step of the External: %w", err))
		return false
	}
	if changed {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.externalSteps++
	}
	return changed
}

func (r *Run) isProbing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probing
}
