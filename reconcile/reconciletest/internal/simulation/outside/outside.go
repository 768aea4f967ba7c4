// Package outside has what the engine and a ready-made API outside of the cluster know of each other. The client of the API puts a
// [Call] into the context of a request, an effect or a query. The engine finds it there, lets its faults happen to the API, and asks the
// [API] what is wrong in it.
package outside

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// API is what the engine asks of an API outside of the cluster. Lines that it returns are the same in each run.
type API interface {
	// Identities returns the IDs that the API has given, each followed by what replaces it in a comparison of two runs.
	Identities() []string
	// Twice returns a line for each thing that the operator has created again for the same object.
	Twice() []string
	// Orphans returns a line for each thing that the operator has created, if no object exists any more for which it was created, read or
	// changed.
	Orphans(exists func(request.ObjectID) bool) []string
}

// Call is one call of an API.
type Call struct {
	API    API
	Outage time.Duration // how long an outage lasts

	// HasPast reports whether the answer of a read would be another one if it showed what was there before the last write. It is nil for a
	// call that changes something.
	HasPast func() bool

	// What the engine sets before the call is carried out.
	Past   bool             // the answer shows what was there before the last write
	Object request.ObjectID // the object of the pass; the zero value outside of a pass
	Pass   int              // the number of the pass; 0 outside of a pass

	// Foreign is set while the call is carried out: what it does to a thing of others, "" if nothing.
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
	Status     int           // the status of HTTP
	RetryAfter time.Duration // 0: the server does not say
}

// Error returns the status and its text.
func (r Refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)) }
