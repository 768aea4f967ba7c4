package request

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Log holds the requests of a run in their order. Its methods may be called by several goroutines.
type Log struct {
	mu    sync.Mutex
	calls []*Call
	from  int // the index of the first call since the last Reset
}

// Add adds a request.
func (l *Log) Add(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// Requests returns the requests since the last Reset. It leaves out the requests of the check that one more pass changes nothing.
func (l *Log) Requests() []Request { return l.list(false) }

// All returns the requests since the last Reset.
func (l *Log) All() []Request { return l.list(true) }

func (l *Log) list(probes bool) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Request, 0, len(l.calls)-l.from)
	for _, c := range l.calls[l.from:] {
		if probes || !c.Probe {
			all = append(all, c.Request)
		}
	}
	return all
}

// ProbesSince returns the requests of passes after the given one that were sent during the check that one more pass changes nothing.
func (l *Log) ProbesSince(pass int) []*Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Call
	for _, c := range l.calls {
		if c.Probe && c.Pass > pass {
			all = append(all, c)
		}
	}
	return all
}

// Reset empties the log for Requests and All.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = len(l.calls)
}

// LastPass returns the number of the pass that sent the last request, and the reads of that pass by the kind of their objects. The log must
// not be empty.
func (l *Log) LastPass() (pass int, reads map[string][]Request) {
	requests, reads := l.All(), map[string][]Request{}
	pass = requests[len(requests)-1].Pass
	for _, r := range requests {
		if r.Pass == pass && !r.IsWrite() && r.External == "" {
			reads[r.Kind.Kind] = append(reads[r.Kind.Kind], r)
		}
	}
	return pass, reads
}

// ReadFirst returns the first object with this name that the pass has read. If the pass was requested with this name, that is the object
// that is reconciled. If the pass has read none, ReadFirst returns the zero value.
func (l *Log) ReadFirst(pass int, name types.NamespacedName) ObjectID {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls[l.from:] {
		if c.Pass == pass && c.Verb == "get" && c.Object == name {
			return ObjectID{Kind: c.Kind, Name: name}
		}
	}
	return ObjectID{}
}

// InThePast returns the writes that changed something, and that a process sent while its cache still was the old one with which it began.
func (l *Log) InThePast() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, c := range l.calls {
		if name := c.String(); c.Past && c.IsWrite() && c.Changed && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// LastChange returns the last request that has one of the names and has changed an object. It returns nil if there is none.
func (l *Log) LastChange(names []string) *Request {
	for _, r := range slices.Backward(l.All()) {
		if r.Changed && r.External == "" && slices.Contains(names, r.String()) {
			return &r
		}
	}
	return nil
}
