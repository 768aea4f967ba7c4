package run

import (
	"fmt"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// actions are the scenario's actions, and how many of them the user has begun. The run's lock guards them.
type actions struct {
	all   []Action
	begun int                      // how many have begun
	then  func(*world.World) error // the check that the last action has by its Then; may be nil
}

// next returns the next action, and counts it as begun. It returns false if there is none.
func (a *actions) next() (Action, bool) {
	if a.begun == len(a.all) {
		return Action{}, false
	}
	a.begun++
	return a.all[a.begun-1], true
}

// hasNext reports whether the user has an action left, and the next one is not a Wait.
func (a *actions) hasNext() bool { return a.begun < len(a.all) && !a.isWait(a.begun) }

// isWait reports whether the action with that index exists and is a Wait.
func (a *actions) isWait(index int) bool { return index < len(a.all) && a.all[index].Wait > 0 }

// haveBegun reports whether all actions have begun.
func (a *actions) haveBegun() bool { return a.begun == len(a.all) }

// last returns the name of the last action that has begun, "start" if none has.
func (a *actions) last() string {
	if a.begun == 0 {
		return "start"
	}
	return a.all[a.begun-1].Name
}

// place returns a text that says where the run is.
func (a *actions) place() string {
	if a.begun == 0 {
		return "it was at the start"
	}
	return fmt.Sprintf("it was at action %d of %d, %q", a.begun, len(a.all), a.last())
}
