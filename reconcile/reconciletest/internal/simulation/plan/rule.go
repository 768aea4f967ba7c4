package plan

import (
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// Rule describes a kind of fault: where it can be injected. Package operator injects most of them,
// and package run (held.go) those that are about what other controllers hold.
type Rule struct {
	Kind            kinds.Fault
	Requests        func(c *request.Call) bool // reports whether it can be injected there; nil: it is not injected at requests, but at changes of objects or in batches
	needsNextAction bool                       // the user must have an action left that is not a Wait
	needsWatch      bool                       // the process must watch the request's kind
	needsTwo        bool                       // the process must watch the kind of a change as whole objects and as metadata
	needsRecreation bool                       // the change must be a deletion after which the user's next action creates the object again
	deletions       bool                       // it is injected at deletions by the user
	batches         bool                       // it is injected where the operator sends several requests at once
	Words           string                     // what happens, for the trace
}

// Rules are the rules of all kinds, in the order in which the faults are tried.
var Rules = []Rule{
	{
		Kind: kinds.CrashBefore, Requests: isWrite,
		Words: "the process dies before the request is sent",
	},
	{
		Kind: kinds.CrashAfter, Requests: isWrite,
		Words: "it is done, and the process dies before it gets the answer",
	},
	{
		Kind: kinds.CrashDowntime, Requests: isWrite, needsNextAction: true,
		Words: "it is done, and the process dies; it starts again after the user's next action",
	},
	{
		Kind: kinds.CrashUnseen, Requests: isAPIWrite, needsWatch: true,
		Words: "it is done, and the process dies; the cache of the next one does not show it for one pass",
	},
	{
		Kind: kinds.CrashDowntimeUnseen, Requests: isAPIWrite, needsNextAction: true, needsWatch: true,
		Words: "it is done, and the process dies; it starts again after the user's next action, and its cache does not show it for one pass",
	},
	{
		Kind: kinds.ConcurrentAction, Requests: isWrite, needsNextAction: true,
		Words: "the user's next action comes just before",
	},
	{
		Kind: kinds.Timeout, Requests: isWrite,
		Words: "it is done, and the answer is lost",
	},
	{
		Kind: kinds.TimeoutBefore, Requests: isWrite,
		Words: "it does not reach the server, and its time is over",
	},
	{
		Kind: kinds.Conflict, Requests: isModification,
		Words: "another writer wrote the object just before",
	},
	{
		Kind: kinds.TooManyRequests, Requests: hasServer,
		Words: "the server refuses it",
	},
	{
		Kind: kinds.InternalError, Requests: hasServer,
		Words: "the server refuses it",
	},
	{
		Kind: kinds.ConnectionRefused, Requests: func(*request.Call) bool { return true },
		Words: "it does not reach the server",
	},
	{
		Kind: kinds.AlreadyExists, Requests: isCreation,
		Words: "it is done, and the answer is that to the client's second attempt",
	},
	{
		Kind: kinds.NotFound, Requests: isWriteOfOwned,
		Words: "another writer deleted the object just before",
	},
	{
		Kind: kinds.LeaderChange, Requests: isWrite,
		Words: "another replica becomes the leader before the request is sent",
	},
	{Kind: kinds.Stale, Words: "the cache does not show it for one pass"},
	{Kind: kinds.StaleLong, Words: "the cache does not show it for two passes"},
	{Kind: kinds.StaleObjects, needsTwo: true, Words: "the cache of whole objects does not show it for one pass, and that of metadata does"},
	{Kind: kinds.StaleMetadata, needsTwo: true, Words: "the cache of metadata does not show it for one pass, and that of whole objects does"},
	{Kind: kinds.MissedEvent, Words: "the cache does not show it until the operator is quiet"},
	{Kind: kinds.MissedDeletion, needsRecreation: true, Words: "the cache does not show it until the user's next action is done"},
	{Kind: kinds.TimeTravel, Words: "the next cache shows it as it was before, for one pass"},
	{Kind: kinds.ForeignFinalizer, deletions: true, Words: "it is removed only when the operator is quiet"},
	{Kind: kinds.Reversed, batches: true, Words: "the last of them is done first"},
	{
		Kind: kinds.StaleAnswer, Requests: func(c *request.Call) bool { return c.HasPast },
		Words: "the answer shows what was there before the last write",
	},
	{
		Kind: kinds.Outage, Requests: func(c *request.Call) bool { return c.API },
		Words: "from now on no call is answered, for a while",
	},
}

func isWrite(c *request.Call) bool { return c.IsWrite() }

func isAPIWrite(c *request.Call) bool { return c.External == "" && c.IsWrite() }

// hasServer reports whether a server answers the request: the API server, the peer of a RoundTripper, or an API of package fakeapi.
func hasServer(c *request.Call) bool { return c.External == "" || c.HTTP || c.API }

func isCreation(c *request.Call) bool { return c.Verb == "create" && c.Subresource == "" }

// isWriteOfOwned reports whether the request writes an object that the operator created.
func isWriteOfOwned(c *request.Call) bool {
	return c.Owned && c.IsWrite() && c.Verb != "create"
}

// isModification reports whether the request can conflict with another writer's.
func isModification(c *request.Call) bool {
	return c.Verb == "update" || c.Verb == "patch" || c.Verb == "apply"
}

// RuleOf returns the rule of a kind, nil if the kind does not exist.
func RuleOf(kind kinds.Fault) *Rule {
	for i := range Rules {
		if Rules[i].Kind == kind {
			return &Rules[i]
		}
	}
	return nil
}

// AppliesTo reports whether the kind of fault can be injected at the point.
func (f *Rule) AppliesTo(p *Point) bool {
	switch {
	case p.Deletion:
		return f.deletions
	case p.Batch:
		return f.batches
	case p.Call != nil && p.Call.DryRun:
		return false // it changes nothing
	case slices.Contains(p.repeated, f.Kind):
		return false // it is tried elsewhere
	case p.Call == nil:
		return f.Requests == nil && !f.deletions && !f.batches && p.Watched &&
			(p.Twice || !f.needsTwo) && (p.Recreated || !f.needsRecreation)
	}
	return f.Requests != nil && f.Requests(p.Call) && (p.HasNext || !f.needsNextAction) && (p.Watched || !f.needsWatch)
}
