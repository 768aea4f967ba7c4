package predicates_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// cut is a transport that can interrupt watches, for longer than the API server remembers what they miss.
type cut struct {
	next http.RoundTripper

	mu       sync.Mutex
	bodies   []io.Closer
	released chan struct{} // not nil while watches are interrupted
}

// interrupt ends all watches. New ones have to wait.
func (c *cut) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = make(chan struct{})
	for _, body := range c.bodies {
		_ = body.Close()
	}
	c.bodies = nil
}

// release answers the watches that wait as the API server does after some minutes: 410 Gone. Then all works again.
func (c *cut) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released != nil {
		close(c.released)
		c.released = nil
	}
}

func (c *cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "true" {
		return c.next.RoundTrip(r)
	}
	c.mu.Lock()
	released := c.released
	c.mu.Unlock()
	if released != nil {
		select {
		case <-released:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return &http.Response{
			StatusCode: http.StatusGone, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)),
		}, nil
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released != nil { // interrupted while it was being answered
		_ = response.Body.Close()
	}
	c.bodies = append(c.bodies, response.Body)
	return response, nil
}
