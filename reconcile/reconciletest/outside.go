package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
)

// Effect changes something outside of the cluster. A test's fake calls it around each change that it
// is asked for; name says which, such as "create user ann", and is the same in each run. The process
// may die before or after it, or the answer may be lost.
func (p *Process) Effect(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &Request{Verb: "effect", External: name}, func(bool) error { return do() })
}

// Query asks for something outside of the cluster, and changes nothing there.
func (p *Process) Query(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &Request{Verb: "query", External: name}, func(bool) error { return do() })
}

// RoundTripper is for an operator that speaks HTTP with what is outside: give it to its client.
// GET and HEAD are queries, all else are effects, named by method and path. Faults answer 429 and 503, or not at all.
func (p *Process) RoundTripper(peer http.Handler) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		verb := "effect"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			verb = "query"
		}
		err := p.send(r.Context(), &Request{Verb: verb, External: r.Method + " " + r.URL.Path, http: true}, func(bool) error {
			peer.ServeHTTP(recorder, r)
			return nil
		})
		if refused, ok := errors.AsType[httpError](err); ok {
			recorder.Header().Set("Retry-After", "1")
			http.Error(recorder, refused.Error(), int(refused))
			err = nil
		}
		if err != nil {
			return nil, err
		}
		return recorder.Result(), nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// httpError is the status of an answer.
type httpError int

func (e httpError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }
