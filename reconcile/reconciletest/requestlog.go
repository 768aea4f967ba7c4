package reconciletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// Request is one call of the operator: a request to the API server, a read of its cache, or an effect or query
// outside of the cluster.
type Request struct {
	Process int // 1 is the first process of the run
	Pass    int // 1 is the first of the run; 0 is outside of any pass

	// Verb is get, list, create, update, patch, apply, delete or deletecollection. Outside of the cluster it is effect or
	// query.
	Verb        string
	Kind        schema.GroupVersionKind // the kind of the object; empty outside of the cluster
	Object      client.ObjectKey        // for a creation with a generated name: the prefix and "*"
	Subresource string                  // such as status, "" for the object itself
	External    string                  // the name of an effect or a query, "" for all other requests

	Body    []byte // a patch or an apply as it is sent, the object of a create or an update as JSON, else nil
	Cached  bool   // a read that did not go to the API server
	Behind  int    // how many changes of the kind the cache did not show at a read of it
	Changed bool   // the request changed something, on the API server or outside of the cluster
	Err     error  // the answer that the operator got
	Fault   string // the kind of fault that happened at the request, "" for none
}

// String returns the request as assertions and faults name it, such as "patch Memcached/status default/sample" or
// "effect create user ann".
func (r *Request) String() string { return (*request.Request)(r).String() }

// IsWrite reports whether the request may change something: all but get, list and query.
func (r *Request) IsWrite() bool { return (*request.Request)(r).IsWrite() }

// RequestLog holds the operator's requests in a run in their order. It leaves out the requests of the additional passes that check that the
// operator changes nothing any more. Its methods may be called by several goroutines. The zero value is an empty log.
type RequestLog struct {
	log *request.Log // nil: the log belongs to no run
}

// Requests returns all requests since the last [RequestLog.Reset], including reads of the cache.
func (l *RequestLog) Requests() []Request {
	if l.log == nil {
		return nil
	}
	requests := l.log.Requests()
	all := make([]Request, len(requests))
	for i := range requests {
		all[i] = Request(requests[i])
	}
	return all
}

// Reset empties the log.
func (l *RequestLog) Reset() {
	if l.log != nil {
		l.log.Reset()
	}
}

// Sent returns the requests to the API server, and the effects and queries outside of the cluster, as
// [Request.String] returns them. Reads of the cache are not among them.
func (l *RequestLog) Sent() []string {
	return l.list(func(r *Request) bool { return !r.Cached })
}

// Writes is like [RequestLog.Sent], without requests and queries that only read.
func (l *RequestLog) Writes() []string { return l.list((*Request).IsWrite) }

func (l *RequestLog) list(counts func(r *Request) bool) []string {
	var all []string
	for _, r := range l.Requests() {
		if counts(&r) {
			all = append(all, r.String())
		}
	}
	return all
}

// AssertSent fails the test unless [RequestLog.Sent] returns exactly want, in this order. It then resets the log.
func (l *RequestLog) AssertSent(t testing.TB, want ...string) {
	t.Helper()
	assertEqual(t, "requests sent", l.Sent(), want)
	l.Reset()
}

// AssertWrites fails the test unless [RequestLog.Writes] returns exactly want, in this order. It then resets the log.
func (l *RequestLog) AssertWrites(t testing.TB, want ...string) {
	t.Helper()
	assertEqual(t, "writes", l.Writes(), want)
	l.Reset()
}

func assertEqual(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d, want %d%s", what, len(got), len(want), sideBySide(want, got))
	}
}

// sideBySide formats two lists line by line. Where they differ, "-" marks the line of want and "+" the line of got.
func sideBySide(want, got []string) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			fmt.Fprintf(&b, "\n  + %s", got[i])
		case i >= len(got):
			fmt.Fprintf(&b, "\n  - %s", want[i])
		case want[i] == got[i]:
			fmt.Fprintf(&b, "\n    %s", got[i])
		default:
			fmt.Fprintf(&b, "\n  - %s\n  + %s", want[i], got[i])
		}
	}
	return b.String()
}
