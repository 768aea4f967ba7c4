package plan

import (
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// requests has a function for each [kinds.Place] that is a request. It reports whether a request is of this kind.
var requests = map[kinds.Place]func(c *request.Call) bool{
	kinds.AtRequest:      func(*request.Call) bool { return true },
	kinds.AtWrite:        func(c *request.Call) bool { return c.IsWrite() },
	kinds.AtAPIWrite:     func(c *request.Call) bool { return c.External == "" && c.IsWrite() },
	kinds.AtModification: func(c *request.Call) bool { return c.Verb == "update" || c.Verb == "patch" || c.Verb == "apply" },
	kinds.AtCreation:     func(c *request.Call) bool { return c.Verb == "create" && c.Subresource == "" },
	kinds.AtOwnedWrite:   func(c *request.Call) bool { return c.Owned && c.IsWrite() && c.Verb != "create" },
	kinds.AtAnswered:     func(c *request.Call) bool { return c.External == "" || c.HTTP || c.API },
	kinds.AtAPICall:      func(c *request.Call) bool { return c.API },
	kinds.AtReviewed:     func(c *request.Call) bool { return c.Reviewed },
	kinds.AtConverted:    func(c *request.Call) bool { return c.Converted },
	kinds.AtStaleRead:    func(c *request.Call) bool { return c.HasPast },
}

// Applies reports whether the kind of fault of a rule can be injected at the point.
func (p *Point) Applies(rule *kinds.Rule) bool {
	switch {
	case p.Deletion:
		return rule.Where == kinds.AtDeletion
	case p.UserWrite:
		return rule.Where == kinds.AtUserWrite
	case p.Batch:
		return rule.Where == kinds.AtBatch
	case p.Call != nil && p.Call.DryRun:
		return false // it changes nothing
	case p.spares(rule) || slices.Contains(p.repeated, rule.Kind):
		return false // an earlier crash leaves the same, or the scenario asks for no faults here
	case p.Call == nil:
		return rule.Where == kinds.AtChange && p.Watched && (p.Twice || !rule.NeedsTwo) && (p.Recreated || !rule.NeedsRecreation)
	}
	is := requests[rule.Where]
	return is != nil && is(p.Call) && (p.HasNext || !rule.NeedsNextAction) && (p.Watched || !rule.NeedsWatch)
}
