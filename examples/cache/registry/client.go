// Package registry is the client of an HTTP service that lists where servers are.
//
// The service has one entry for each name: PUT /caches/NAMESPACE/NAME with {"address": "…"} creates or replaces it, DELETE of the
// same path removes it. Both may be repeated.
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

// Put creates or replaces the entry of a name.
func (c *Client) Put(ctx context.Context, name types.NamespacedName, address string) error {
	body, err := json.Marshal(entry{address})
	if err != nil {
		return err
	}
	_, err = c.send(ctx, http.MethodPut, name, body)
	return err
}

// Delete removes the entry of a name. It returns nil if there is none.
func (c *Client) Delete(ctx context.Context, name types.NamespacedName) error {
	status, err := c.send(ctx, http.MethodDelete, name, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return err
}

// send sends a request and returns the status of the answer. Any status but 2xx is an error.
func (c *Client) send(ctx context.Context, method string, name types.NamespacedName, body []byte) (status int, err error) {
	target := c.base.JoinPath("caches", name.Namespace, name.Name).String()
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, err // which names method and URL, without a password
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)); err != nil { // so that the connection is used again
		return 0, fmt.Errorf("%s %s: %w", method, request.URL.Redacted(), err)
	}
	if answer.StatusCode/100 != 2 {
		return answer.StatusCode, fmt.Errorf("%s %s: %s", method, request.URL.Redacted(), answer.Status)
	}
	return answer.StatusCode, nil
}
