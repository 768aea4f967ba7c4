package reconciletest

import (
	"fmt"
	"strconv"
	"strings"
)

// Fault is one thing that goes wrong at one point of a run.
type Fault struct {
	Kind FaultKind
	At   string // the request, as [Request.String] gives it, or the change of an object
	Nth  int    // of the requests or changes of that name; 1 is the first
}

// FaultKind is what goes wrong.
type FaultKind string

// What goes wrong, and where it is tried.
const (
	// CrashBefore: the process dies before it sends a write, or has an effect outside.
	CrashBefore FaultKind = "crash before"
	// CrashAfter: the process dies when a write is stored, or an effect has happened, and before it
	// learns of that.
	CrashAfter FaultKind = "crash after"
	// CrashDowntime is CrashAfter, and the user does the next thing before the process is started again.
	CrashDowntime FaultKind = "crash with downtime after"
	// CrashUnseen is CrashAfter, and the cache of the process that goes on does not show the write, nor anything
	// later of that kind, while one pass over every object runs: a replica that stood by takes over whose watch
	// lags, or a list comes from an API server that does.
	CrashUnseen FaultKind = "crash unseen after"
	// CrashDowntimeUnseen is CrashUnseen, and the user does the next thing before the process is started again.
	CrashDowntimeUnseen FaultKind = "crash with downtime unseen after"
	// ConcurrentAction: the user does the next thing just before a write or an effect.
	ConcurrentAction FaultKind = "concurrent action before"
	// Timeout: a write is stored, or an effect happens, and the answer is that it took too long.
	Timeout FaultKind = "timeout after"
	// Conflict: somebody else writes the object just before an update, patch or apply: an annotation, a label and a finalizer,
	// and before a status write a condition, if the kind has those of type metav1.Condition.
	Conflict FaultKind = "conflict at"
	// TooManyRequests: the API server, or the peer of [Process.RoundTripper], refuses any request, and asks to wait
	// a second.
	TooManyRequests FaultKind = "too many requests at"
	// InternalError: the API server fails at any request; a peer of RoundTripper is not available (503).
	InternalError FaultKind = "internal error at"
	// ConnectionRefused: any request, effect or query does not get through.
	ConnectionRefused FaultKind = "connection refused at"
	// AlreadyExists: a creation is stored, its answer is lost on the way, and the client's own
	// second attempt is answered.
	AlreadyExists FaultKind = "already exists at"
	// NotFound: somebody else deletes an object that the operator made, just before the operator
	// writes or deletes it.
	NotFound FaultKind = "not found at"
	// Stale: the cache does not show a change, nor later ones of that kind, while one pass over
	// every object that it knows runs; then it catches up.
	Stale FaultKind = "stale after"
	// StaleLong is Stale for two passes.
	StaleLong FaultKind = "stale for long after"
	// MissedEvent: the watch breaks at a change. When all is quiet the kind is listed anew, and
	// what happened to each object meanwhile arrives as one event.
	MissedEvent FaultKind = "missed event of"
	// TimeTravel: when all is quiet after a change, another process goes on, whose cache shows that kind as it was
	// before the change, while one pass over every object runs; then it catches up.
	TimeTravel FaultKind = "time travel to before"
	// LeaderChange: another replica becomes the leader before a write or an effect, and does what there
	// is to do; only then the old leader goes on with its pass, to the end.
	LeaderChange FaultKind = "leader change before"
)

// faultKinds is in the order in which they are tried.
var faultKinds = []struct {
	kind    FaultKind
	request func(r *Request) bool // nil: it is at changes
}{
	{CrashBefore, (*Request).IsWrite},
	{CrashAfter, (*Request).IsWrite},
	{CrashDowntime, (*Request).IsWrite},
	{CrashUnseen, func(r *Request) bool { return r.External == "" && r.IsWrite() }},
	{CrashDowntimeUnseen, func(r *Request) bool { return r.External == "" && r.IsWrite() }},
	{ConcurrentAction, (*Request).IsWrite},
	{Timeout, (*Request).IsWrite},
	{Conflict, func(r *Request) bool { return r.Verb == "update" || r.Verb == "patch" || r.Verb == "apply" }},
	{TooManyRequests, func(r *Request) bool { return r.External == "" || r.http }},
	{InternalError, func(r *Request) bool { return r.External == "" || r.http }},
	{ConnectionRefused, func(*Request) bool { return true }},
	{AlreadyExists, func(r *Request) bool { return r.Verb == "create" && r.Subresource == "" }},
	{NotFound, func(r *Request) bool { return r.made && r.IsWrite() && r.Verb != "create" }},
	{LeaderChange, (*Request).IsWrite},
	{Stale, nil},
	{StaleLong, nil},
	{MissedEvent, nil},
	{TimeTravel, nil},
}

// String is what [Replay] takes.
func (f Fault) String() string { return fmt.Sprintf("%s: %s #%d", f.Kind, f.At, f.Nth) }

// between the faults of a run, as [Replay] takes them.
const between = "; "

func formatFaults(faults []Fault) string {
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = f.String()
	}
	return strings.Join(all, between)
}

// parseFaults is the reverse of formatFaults.
func parseFaults(text string) ([]Fault, error) {
	var faults []Fault
	for part := range strings.SplitSeq(text, between) {
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
		return Fault{}, fmt.Errorf("fault %q: want the form %q", text, Fault{CrashAfter, "create Deployment default/web", 1})
	}
	nth, err := strconv.Atoi(rest[number+2:])
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	if !isKind(FaultKind(kind)) {
		return Fault{}, fmt.Errorf("fault %q: there is no kind %q", text, kind)
	}
	return Fault{FaultKind(kind), rest[:number], nth}, nil
}

func isKind(kind FaultKind) bool {
	for _, known := range faultKinds {
		if known.kind == kind {
			return true
		}
	}
	return false
}
