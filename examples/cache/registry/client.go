// Package registry is the client of an HTTP service that lists where servers are.
//
// The service has one entry for each name: PUT /caches/NAMESPACE/NAME with {"address": "…"} creates or replaces it, GET of the
// same path returns it, DELETE removes it. All may be repeated.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// timeout of a request.
const timeout = 10 * time.Second

// Client is a client of the registry.
type Client struct {
	base *url.URL
	http http.Client
}

// New returns a client of the registry at a URL, such as http://registry.example.com. transport sends the requests; nil is the
// default of package http.
func New(address string, transport http.RoundTripper) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a registry: write it as http://registry.example.com", base.Redacted())
	}
	return &Client{base, http.Client{Transport: transport, Timeout: timeout}}, nil
}

type entry struct {
	Address string `json:"address"`
}

// Get returns the address in the entry of a name, and nothing if there is none.
func (c *Client) Get(ctx context.Context, name types.NamespacedName) (address string, err error) {
	status, body, err := c.send(ctx, http.MethodGet, name, nil)
	switch {
	case status == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", err
	}
	var found entry
	if err := json.Unmarshal(body, &found); err != nil {
		return "", fmt.Errorf("the entry of %s: %w", name, err)
	}
	return found.Address, nil
}

// Put creates or replaces the entry of a name.
func (c *Client) Put(ctx context.Context, name types.NamespacedName, address string) error {
	body, err := json.Marshal(entry{address})
	if err != nil {
		return err
	}
	_, _, err = c.send(ctx, http.MethodPut, name, body)
	return err
}

// Delete removes the entry of a name. It returns nil if there is none.
func (c *Client) Delete(ctx context.Context, name types.NamespacedName) error {
	status, _, err := c.send(ctx, http.MethodDelete, name, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return err
}

// maxAnswer is the largest answer that is read, in bytes.
const maxAnswer = 64 << 10

// send sends a request and returns the status and the body of the answer. Any status but 2xx is an error.
func (c *Client) send(ctx context.Context, method string, name types.NamespacedName, content []byte) (status int, body []byte, err error) {
	target := c.base.JoinPath("caches", name.Namespace, name.Name).String()
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err // which names method and URL, without a password
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // to its end, so that the connection is used again
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, request.URL.Redacted(), err)
	}
	if answer.StatusCode/100 != 2 {
		return answer.StatusCode, nil, fmt.Errorf("%s %s: %s", method, request.URL.Redacted(), answer.Status)
	}
	return answer.StatusCode, body, nil
}
