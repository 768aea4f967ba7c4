package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// Fault is one thing that goes wrong at one point of a run.
type Fault struct {
	Kind kinds.Fault
	At   string // the request, the change of an object, or its deletion by the user
	Nth  int    // which of the requests or changes of that name; 1 is the first
}

// faultRule describes a kind of fault: where it can be injected, and how.
type faultRule struct {
	kind            kinds.Fault
	requests        func(c *call) bool      // reports whether it can be injected there; nil: it is injected at changes of objects
	apply           func(o *outgoing) error // handles the request; see send.go. For changes of objects see changes.go
	needsNextAction bool                    // the user must have an action left that is not a Wait
	needsWatch      bool                    // the process must watch the request's kind
	needsTwo        bool                    // the process must watch the kind of a change as whole objects and as metadata
	deletions       bool                    // it is injected at deletions by the user; see user.go
	batches         bool                    // it is injected where the operator sends several requests at once; see batch.go
	words           string                  // what happens, for the trace
}

// faultRules are the rules of all kinds, in the order in which the faults are tried.
var faultRules = []faultRule{
	{
		kind: kinds.CrashBefore, requests: isWrite, apply: (*outgoing).crashBefore,
		words: "the process dies before the request is sent",
	},
	{
		kind: kinds.CrashAfter, requests: isWrite, apply: (*outgoing).crashAfter,
		words: "it is done, and the process dies before it gets the answer",
	},
	{
		kind: kinds.CrashDowntime, requests: isWrite, apply: (*outgoing).crashDowntime, needsNextAction: true,
		words: "it is done, and the process dies; it starts again after the user's next action",
	},
	{
		kind: kinds.CrashUnseen, requests: isAPIWrite, apply: (*outgoing).crashUnseen, needsWatch: true,
		words: "it is done, and the process dies; the cache of the next one does not show it for one pass",
	},
	{
		kind: kinds.CrashDowntimeUnseen, requests: isAPIWrite, apply: (*outgoing).crashDowntimeUnseen, needsNextAction: true, needsWatch: true,
		words: "it is done, and the process dies; it starts again after the user's next action, and its cache does not show it for one pass",
	},
	{
		kind: kinds.ConcurrentAction, requests: isWrite, apply: (*outgoing).concurrentAction, needsNextAction: true,
		words: "the user's next action comes just before",
	},
	{
		kind: kinds.Timeout, requests: isWrite, apply: (*outgoing).timeout,
		words: "it is done, and the answer is lost",
	},
	{
		kind: kinds.Conflict, requests: isModification, apply: (*outgoing).conflict,
		words: "another writer wrote the object just before",
	},
	{
		kind: kinds.TooManyRequests, requests: hasServer, apply: (*outgoing).tooManyRequests,
		words: "the server refuses it",
	},
	{
		kind: kinds.InternalError, requests: hasServer, apply: (*outgoing).internalError,
		words: "the server refuses it",
	},
	{
		kind: kinds.ConnectionRefused, requests: func(*call) bool { return true }, apply: (*outgoing).connectionRefused,
		words: "it does not reach the server",
	},
	{
		kind: kinds.AlreadyExists, requests: isCreation, apply: (*outgoing).alreadyExists,
		words: "it is done, and the answer is that to the client's second attempt",
	},
	{
		kind: kinds.NotFound, requests: isWriteOfOwned, apply: (*outgoing).notFound,
		words: "another writer deleted the object just before",
	},
	{
		kind: kinds.LeaderChange, requests: isWrite, apply: (*outgoing).leaderChange,
		words: "another replica becomes the leader before the request is sent",
	},
	{kind: kinds.Stale, words: "the cache does not show it for one pass"},
	{kind: kinds.StaleLong, words: "the cache does not show it for two passes"},
	{kind: kinds.StaleObjects, needsTwo: true, words: "the cache of whole objects does not show it for one pass, and that of metadata does"},
	{kind: kinds.StaleMetadata, needsTwo: true, words: "the cache of metadata does not show it for one pass, and that of whole objects does"},
	{kind: kinds.MissedEvent, words: "the cache does not show it until the operator is quiet"},
	{kind: kinds.TimeTravel, words: "the next cache shows it as it was before, for one pass"},
	{kind: kinds.ForeignFinalizer, deletions: true, words: "it is removed only when the operator is quiet"},
	{kind: kinds.Reversed, batches: true, words: "the last of them is done first"},
}

func isWrite(c *call) bool    { return c.IsWrite() }
func isAPIWrite(c *call) bool { return c.External == "" && c.IsWrite() }

// hasServer reports whether a server answers the request: the API server, or the peer of a RoundTripper.
func hasServer(c *call) bool { return c.External == "" || c.http }

func isCreation(c *call) bool { return c.Verb == "create" && c.Subresource == "" }

// isWriteOfOwned reports whether the request writes an object that the operator created.
func isWriteOfOwned(c *call) bool {
	return c.owned && c.IsWrite() && c.Verb != "create"
}

// isModification reports whether the request can conflict with another writer's.
func isModification(c *call) bool {
	return c.Verb == "update" || c.Verb == "patch" || c.Verb == "apply"
}

func ruleOf(kind kinds.Fault) *faultRule {
	for i := range faultRules {
		if faultRules[i].kind == kind {
			return &faultRules[i]
		}
	}
	return nil
}

// appliesTo reports whether the kind of fault can be injected at the point.
func (f *faultRule) appliesTo(p *point) bool {
	switch {
	case p.deletion:
		return f.deletions
	case p.batch:
		return f.batches
	case p.call == nil:
		return f.requests == nil && !f.deletions && !f.batches && p.watched && (p.twice || !f.needsTwo)
	}
	return f.requests != nil && f.requests(p.call) && (p.hasNext || !f.needsNextAction) && (p.watched || !f.needsWatch)
}

// point is where a fault can be injected: a request, the change of an object, or a deletion by the user.
type point struct {
	call     *call // nil: a change or a deletion
	deletion bool  // the user deletes the object
	batch    bool  // the operator sends several requests at once
	object   objectID
	name     string
	nth      int  // which of the requests, changes or deletions of that name
	hasNext  bool // the user has an action left that is not a Wait
	watched  bool // the process watches the kind
	twice    bool // the process watches the kind as whole objects and as metadata
}

// faults returns the kinds of faults that can be injected at the point.
func (p *point) faults() []kinds.Fault {
	var kinds []kinds.Fault
	for i := range faultRules {
		if faultRules[i].appliesTo(p) {
			kinds = append(kinds, faultRules[i].kind)
		}
	}
	return kinds
}

// plan holds the faults to inject in a run, and the points that the run has reached. The run's lock guards it.
type plan struct {
	faults   []Fault
	count    map[string]int // the number of requests and changes by name
	points   []point
	injected []Fault
}

// reach notes that the run has reached a point. It returns the point with its nth, and the kind of the fault planned
// there, "" for none.
func (p *plan) reach(at point) (kinds.Fault, point) {
	p.count[at.name]++
	at.nth = p.count[at.name]
	p.points = append(p.points, at)
	for _, f := range p.faults {
		if f.At == at.name && f.Nth == at.nth {
			return f.Kind, at
		}
	}
	return "", at
}

// noteInjected notes that a planned fault is injected.
func (p *plan) noteInjected(kind kinds.Fault, at point) {
	p.injected = append(p.injected, Fault{kind, at.name, at.nth})
}

// String returns the fault in the form that ParseFaults reads.
func (f Fault) String() string { return fmt.Sprintf("%s: %s #%d", f.Kind, f.At, f.Nth) }

// separator separates the faults of a run.
const separator = "; "

// FormatFaults returns faults in the form that ParseFaults reads.
func FormatFaults(faults []Fault) string {
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = f.String()
	}
	return strings.Join(all, separator)
}

// ParseFaults parses what FormatFaults returns.
func ParseFaults(text string) ([]Fault, error) {
	var faults []Fault
	for part := range strings.SplitSeq(text, separator) {
		f, err := parseFault(part)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(text string) (Fault, error) {
	kind, rest, found := strings.Cut(strings.TrimSpace(text), ": ")
	number := strings.LastIndex(rest, " #")
	if !found || number < 0 {
		return Fault{}, fmt.Errorf("fault %q: want the form %q", text, Fault{kinds.CrashAfter, "create Deployment default/web", 1})
	}
	nth, err := strconv.Atoi(rest[number+2:])
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	if !slices.Contains(kinds.Faults(), kinds.Fault(kind)) {
		return Fault{}, fmt.Errorf("fault %q: there is no kind %q", text, kind)
	}
	return Fault{kinds.Fault(kind), rest[:number], nth}, nil
}
