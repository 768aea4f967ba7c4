package reconciletest

import (
	"slices"
	"sync"
	"testing"
)

// RequestLog has all requests of a run in their order, except those of the one more pass that shows whether all is
// quiet. Its methods may be called by several goroutines.
type RequestLog struct {
	mu       sync.Mutex
	requests []*Request
	from     int // of what counts
}

func (l *RequestLog) add(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
}

// Requests gives all requests since the last [RequestLog.Reset], reads of the cache among them.
func (l *RequestLog) Requests() []Request {
	return slices.DeleteFunc(l.all(), func(r Request) bool { return r.probe })
}

// all is Requests with those of the passes that show whether all is quiet, which do not count for users.
func (l *RequestLog) all() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Request, 0, len(l.requests)-l.from)
	for _, r := range l.requests[l.from:] {
		all = append(all, *r)
	}
	return all
}

// Reset lets the ledger begin anew, so that what comes next is counted alone.
func (l *RequestLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = len(l.requests)
}

// Sent gives the requests that went to the API server, and the effects outside, as [Request.String]
// writes them.
func (l *RequestLog) Sent() []string {
	return l.list(func(r *Request) bool { return !r.Cached })
}

// Writes is [RequestLog.Sent] without what only reads.
func (l *RequestLog) Writes() []string {
	return l.list(func(r *Request) bool { return r.IsWrite() })
}

func (l *RequestLog) list(counts func(r *Request) bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, r := range l.requests[l.from:] {
		if counts(r) && !r.probe {
			all = append(all, r.String())
		}
	}
	return all
}

// AssertSent fails the test unless exactly these requests were sent, in this order, since the last
// [RequestLog.Reset]; it resets the ledger.
func (l *RequestLog) AssertSent(t testing.TB, want ...string) {
	t.Helper()
	assertSame(t, "requests sent", l.Sent(), want)
	l.Reset()
}

// AssertWrites is [RequestLog.AssertSent] for the writes alone.
func (l *RequestLog) AssertWrites(t testing.TB, want ...string) {
	t.Helper()
	assertSame(t, "writes", l.Writes(), want)
	l.Reset()
}

func assertSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d, want %d%s", what, len(got), len(want), listDifference(want, got))
}
