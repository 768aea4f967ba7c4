// Package outside connects the engine with a ready-made API outside of the cluster. The client of the API puts a [Call] into the context of
// a request, an effect or a query. The engine finds it there, injects its faults into the API, and asks the [API] what is wrong in it.
package outside

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// API is a ready-made API outside of the cluster, as the engine sees it. The lines that it returns are the same in each run.
type API interface {
	// Identities returns the IDs that the API has given to things. Each ID is followed by its replacement in a comparison of two runs.
	Identities() []string
	// Twice returns a line for each thing that the operator has created twice for the same object.
	Twice() []string
	// Orphans returns a line for each thing that the operator has created, if all objects are gone for which it created, read or changed
	// the thing.
	Orphans(exists func(request.ObjectID) bool) []string
}

// Call is one call of an API.
type Call struct {
	API    API
	Outage time.Duration // how long an outage lasts

	// HasPast reports whether a read would have another answer if it showed the state before the last write. It is nil for a call that
	// changes something.
	HasPast func() bool

	// The engine sets these before the call is carried out.
	Past   bool             // the answer is to show the state before the last write
	Object request.ObjectID // the object that the pass reconciles; the zero value outside of a pass
	Pass   int              // the number of the pass; 0 outside of a pass

	// Foreign says what the call has done to a thing of another owner, "" if nothing. It is set while the call is carried out.
	Foreign string
}

type key struct{}

// NewContext returns a context that carries the call.
func NewContext(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// FromContext returns the call that the context carries, nil if it carries none.
func FromContext(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}

// Refusal is the answer of a server that does not carry out a request.
type Refusal struct {
	Status     int           // the HTTP status
	RetryAfter time.Duration // 0: the server does not say
}

// Error returns the status and its text.
func (r Refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)) }
