// Package requests counts the requests that a client sends to an API server, at the transport.
package requests

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Count records requests as "METHOD resource", such as "POST deployments" or "PATCH memcacheds/status", in the order in which they were
// sent. It does not record discovery, lists, watches, leases and access reviews: these are requests of the process, and not of a reconcile.
// It counts requests that write events separately. The zero value is ready to use.
type Count struct {
	mu     sync.Mutex
	sent   []string
	events int
}

// Wrap returns a copy of the configuration. The requests of clients with this configuration are counted.
func (c *Count) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			c.add(r)
			return next.RoundTrip(r)
		})
	})
	return config
}

func (c *Count) add(r *http.Request) {
	name := name(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case name != "":
		c.sent = append(c.sent, name)
	case r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/events"):
		c.events++
	}
}

// Events returns the number of requests that have written an event since the Count was made. Event recorders send them in the background.
func (c *Count) Events() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events
}

// Add records a request that no HTTP transport sends, such as a request to a server in memory. request is "METHOD resource".
func (c *Count) Add(request string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, request)
}

// Sent returns the requests since the last call.
func (c *Count) Sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return slices.Clip(sent)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// name returns the method and the resource of a request, or "" for a request that is not recorded. Paths are
// /api/v1/namespaces/NS/RESOURCE/NAME/SUB and /apis/GROUP/VERSION/….
func name(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "" // a request for discovery
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource, object := parts[0], len(parts) > 1
	if resource == "events" || resource == "leases" || strings.HasSuffix(resource, "reviews") || r.Method == http.MethodGet && !object {
		return ""
	}
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return r.Method + " " + resource
}
