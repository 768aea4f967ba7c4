package reconciletest

import (
	"context"
	"net/http"
	"net/http/httptest"
)

// Effect changes something outside of the cluster. A test's fake calls it around each change that it
// is asked for; name says which, such as "create user ann", and is the same in each run. The process
// may die before or after it, or the answer may be lost.
func (p *Process) Effect(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &Request{Verb: "effect", Outside: name}, func(bool) error { return do() })
}

// Query asks for something outside of the cluster, and changes nothing there.
func (p *Process) Query(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &Request{Verb: "query", Outside: name}, func(bool) error { return do() })
}

// RoundTripper is for an operator that speaks HTTP with what is outside: give it to its client.
// GET and HEAD are queries, all else are effects, named by method and path.
func (p *Process) RoundTripper(peer http.Handler) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		var answer *http.Response
		do := func() error {
			recorder := httptest.NewRecorder()
			peer.ServeHTTP(recorder, r)
			answer = recorder.Result()
			return nil
		}
		send := p.Effect
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			send = p.Query
		}
		if err := send(r.Context(), r.Method+" "+r.URL.Path, do); err != nil {
			return nil, err
		}
		return answer, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
