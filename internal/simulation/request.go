package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is one call of the operator. Type Request of package reconciletest has the same fields, and documents them.
type Request struct {
	Process     int
	Pass        int
	Verb        string
	Kind        schema.GroupVersionKind
	Object      client.ObjectKey
	Subresource string
	External    string
	Body        []byte
	Cached      bool
	Behind      int
	Changed     bool
	Err         error
	Fault       string
}

// String returns the request as faults and assertions name it.
func (r *Request) String() string {
	var b strings.Builder
	b.WriteString(r.Verb)
	b.WriteByte(' ')
	if r.External != "" {
		b.WriteString(r.External)
		return b.String()
	}
	b.WriteString(r.Kind.Kind)
	if r.Subresource != "" {
		b.WriteByte('/')
		b.WriteString(r.Subresource)
	}
	if name := r.Object.String(); name != "/" {
		b.WriteByte(' ')
		b.WriteString(strings.TrimPrefix(name, "/"))
	}
	return b.String()
}

// IsWrite reports whether the request may change something.
func (r *Request) IsWrite() bool {
	switch r.Verb {
	case "get", "list", "query":
		return false
	}
	return true
}

// isDeletion reports whether the request deletes objects.
func (r *Request) isDeletion() bool { return r.Verb == "delete" || r.Verb == "deletecollection" }

// isRefused reports whether the API server rejected a write. NotFound and AlreadyExists do not count: operators expect
// them.
func (r *Request) isRefused() bool {
	return r.External == "" && r.IsWrite() && r.Err != nil && !apierrors.IsNotFound(r.Err) && !apierrors.IsAlreadyExists(r.Err)
}

// answer returns a short description of the answer, for the trace.
func (r *Request) answer() string {
	switch {
	case r.Err != nil:
		return strings.ReplaceAll(r.Err.Error(), "\n", " ")
	case r.Behind > 0:
		return fmt.Sprintf("from the cache, which is %s behind", Plural(r.Behind, "change"))
	case r.Cached:
		return "from the cache"
	case r.IsWrite() && !r.Changed:
		return "no change"
	}
	return "ok"
}

// call is a request with the fields that only the engine needs. Its answer is set later than it is recorded.
type call struct {
	Request
	owned bool // the operator created the object
	http  bool // it goes to the peer of a RoundTripper
	probe bool // it belongs to the check that the operator rests

	dryRun bool // it asks the API server to change nothing
	past   bool // the process began with an old cache, which has not caught up yet
}

// RequestLog holds the requests of a run in their order. Its methods may be called by several goroutines.
type RequestLog struct {
	mu    sync.Mutex
	calls []*call
	from  int // the index of the first call since the last Reset
}

func (l *RequestLog) add(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// Requests returns the requests since the last Reset, without the requests during the check that the operator rests.
func (l *RequestLog) Requests() []Request { return l.list(false) }

// all returns the requests since the last Reset.
func (l *RequestLog) all() []Request { return l.list(true) }

func (l *RequestLog) list(probes bool) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Request, 0, len(l.calls)-l.from)
	for _, c := range l.calls[l.from:] {
		if probes || !c.probe {
			all = append(all, c.Request)
		}
	}
	return all
}

// probesSince returns the requests of the check that the operator rests, of passes after the given one.
func (l *RequestLog) probesSince(pass int) []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*call
	for _, c := range l.calls {
		if c.probe && c.Pass > pass {
			all = append(all, c)
		}
	}
	return all
}

// Reset empties the log for Requests and all.
func (l *RequestLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = len(l.calls)
}

// lastPass returns the number of the pass of the last request, and the reads of this pass by the kind of the objects. The log
// must not be empty.
func (l *RequestLog) lastPass() (pass int, reads map[string][]Request) {
	requests, reads := l.all(), map[string][]Request{}
	pass = requests[len(requests)-1].Pass
	for _, r := range requests {
		if r.Pass == pass && !r.IsWrite() && r.External == "" {
			reads[r.Kind.Kind] = append(reads[r.Kind.Kind], r)
		}
	}
	return pass, reads
}

// inThePast returns the writes that changed something, and that were sent by processes whose cache was old.
func (l *RequestLog) inThePast() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, c := range l.calls {
		if name := c.String(); c.past && c.IsWrite() && c.Changed && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// lastChange returns the last request that changed an object and has one of the names, nil if there is none.
func (l *RequestLog) lastChange(names []string) *Request {
	for _, r := range slices.Backward(l.all()) {
		if r.Changed && r.External == "" && slices.Contains(names, r.String()) {
			return &r
		}
	}
	return nil
}

// Plural returns the number and the noun, with an s unless the number is 1.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
