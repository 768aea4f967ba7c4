package fakeapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
)

// Client calls an [API] for one process of the operator. Faults happen at its calls. [API.Client] returns one.
type Client[V any] struct {
	api     *API[V]
	process *reconciletest.Process
}

// Client returns the client of a process. Call it in [reconciletest.Scenario.Start].
func (a *API[V]) Client(p *reconciletest.Process) *Client[V] { return &Client[V]{a, p} }

// Get does the same as [API.Get], as a query of the operator: faults happen at it.
func (c *Client[V]) Get(ctx context.Context, id string) (found Thing[V], err error) {
	s := c.api.store()
	err = c.query(ctx, "get "+s.labelOf(id), id, func(ctx context.Context) (err error) {
		found, err = s.get(ctx, id)
		return err
	})
	return found, err
}

// List does the same as [API.List], as a query of the operator: faults happen at it.
func (c *Client[V]) List(ctx context.Context) (all []Thing[V], err error) {
	s := c.api.store()
	err = c.query(ctx, "list "+s.kind+"s", "", func(ctx context.Context) error {
		all = s.list(ctx)
		return nil
	})
	return all, err
}

// Create does the same as [API.Create], as an effect of the operator: faults happen at it.
func (c *Client[V]) Create(ctx context.Context, t Thing[V]) (Thing[V], error) {
	s, made := c.api.store(), Thing[V]{}
	err := c.effect(ctx, "create "+s.label(t), func(ctx context.Context) (err error) {
		made, err = s.create(ctx, t)
		return err
	})
	if err != nil { // the thing may have been created, and the answer lost
		return Thing[V]{}, err
	}
	return made, nil
}

// Update does the same as [API.Update], as an effect of the operator: faults happen at it.
func (c *Client[V]) Update(ctx context.Context, t Thing[V]) error {
	s := c.api.store()
	return c.effect(ctx, "update "+s.labelOf(s.idOf(t)), func(ctx context.Context) error { return s.update(ctx, t) })
}

// Delete does the same as [API.Delete], as an effect of the operator: faults happen at it.
func (c *Client[V]) Delete(ctx context.Context, id string) error {
	s := c.api.store()
	return c.effect(ctx, "delete "+s.labelOf(id), func(ctx context.Context) error { return s.remove(ctx, id) })
}

// query makes a call that reads the thing with the ID. If the ID is "", the call reads all things.
func (c *Client[V]) query(ctx context.Context, name, id string, do func(ctx context.Context) error) error {
	ctx = outside.NewContext(ctx, c.api.call(func() bool { return c.api.store().hasPast(id) }))
	return explain(c.process.Query(ctx, name, func() error { return do(ctx) }))
}

// effect makes a call that changes something.
func (c *Client[V]) effect(ctx context.Context, name string, do func(ctx context.Context) error) error {
	ctx = outside.NewContext(ctx, c.api.call(nil))
	return explain(c.process.Effect(ctx, name, func() error { return do(ctx) }))
}

// call returns a call of the API, as the engine of reconciletest sees it. hasPast is nil for a call that changes something.
func (a *API[V]) call(hasPast func() bool) *outside.Call {
	return &outside.Call{API: judge[V]{a.store()}, Outage: cmp.Or(a.OutageTime, defaultOutage), HasPast: hasPast}
}

// RoundTripper returns the transport of an HTTP client, for an operator that calls the API by HTTP. The handler answers the requests: it
// calls the methods of the API with the context of the request. GET and HEAD are queries, and all other methods are effects. During an
// outage the status is 503. A refused request gets status 429 and the header Retry-After.
func (a *API[V]) RoundTripper(p *reconciletest.Process, handler http.Handler) http.RoundTripper {
	inner := p.RoundTripper(handler)
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		var hasPast func() bool
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			hasPast = func() bool { return a.store().hasPast("") }
		}
		return inner.RoundTrip(r.WithContext(outside.NewContext(r.Context(), a.call(hasPast))))
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
