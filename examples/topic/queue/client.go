// Package queue is the client of a queue server, which keeps topics behind an HTTP API.
//
// PUT /topics/NAME with {"owner": "…", "partitions": 3, "retentionHours": 24} creates a topic. If there is one of that name, the answer has
// status 409. GET returns it, PATCH with the same fields changes it, and DELETE deletes it. Each request has a bearer token.
package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

const (
	// timeout is how long a request may take, with its answer.
	timeout = 10 * time.Second
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 64 << 10
)

// Settings are what the server keeps of a topic.
type Settings struct {
	Owner          string `json:"owner"` // whose it is; the server only keeps it
	Partitions     int32  `json:"partitions"`
	RetentionHours int32  `json:"retentionHours"`
}

// Server is a queue server.
type Server struct {
	base *url.URL
	http http.Client
}

// NewServer returns the server at a URL, such as https://queue.example.net. transport sends the requests; nil is the default of package
// http. No redirection is followed, so that the token is sent to nobody else.
func NewServer(address string, transport http.RoundTripper) (*Server, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return nil, errors.New("the URL of a server looks like https://queue.example.net, without a user") // and is not quoted: it may have a password
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Server{base, http.Client{Transport: transport, Timeout: timeout, CheckRedirect: stay}}, nil
}

// Client calls the API of a server with a token.
type Client struct {
	server *Server
	token  secrets.Sensitive
}

// Connect returns a client with a token. Spaces and line breaks around the token do not count. If it has other bytes that a header cannot
// have, the error is made by external.Refused.
func (s *Server) Connect(token secrets.Sensitive) (*Client, error) {
	token = bytes.TrimSpace(token)
	if len(token) == 0 || bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, external.Refused("InvalidToken", errors.New("the token is empty, or has a space or another byte that a header cannot have"))
	}
	return &Client{s, token}, nil
}

// Get returns the settings of a topic, or external.ErrNotFound.
func (c *Client) Get(ctx context.Context, name string) (found Settings, err error) {
	answer, err := c.send(ctx, http.MethodGet, name, nil)
	if err == nil && json.Unmarshal(answer, &found) != nil {
		err = errors.New("the server's answer is not the JSON of a topic")
	}
	return found, err
}

// Create creates a topic. If there is one of that name, it returns external.ErrExists.
func (c *Client) Create(ctx context.Context, name string, s Settings) error {
	return c.set(ctx, http.MethodPut, name, s)
}

// Update changes the settings of a topic.
func (c *Client) Update(ctx context.Context, name string, s Settings) error {
	return c.set(ctx, http.MethodPatch, name, s)
}

// Delete deletes a topic. If there is none, it returns external.ErrNotFound.
func (c *Client) Delete(ctx context.Context, name string) error {
	_, err := c.send(ctx, http.MethodDelete, name, nil)
	return err
}

// set sends settings.
func (c *Client) set(ctx context.Context, method, name string, s Settings) error {
	body, err := json.Marshal(s)
	if err == nil {
		_, err = c.send(ctx, method, name, body)
	}
	return err
}

// send sends a request, and returns the body of the answer. Any status but 2xx is an error.
func (c *Client) send(ctx context.Context, method, name string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server.base.JoinPath("topics", name).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(c.token))
	request.Header.Set("Content-Type", "application/json")
	response, err := c.server.http.Do(request)
	if err != nil {
		return nil, unreachable(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // to its end, so that the connection is used again
	if err != nil {
		return nil, unreachable(err)
	}
	return answer, explain(response)
}

// explain returns what an answer means for the pass, and nil if it is a success. The text has nothing of the body: whoever may read the
// object could read it.
func explain(response *http.Response) error {
	status := response.StatusCode
	err := fmt.Errorf("the server answers %d %s", status, http.StatusText(status))
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusNotFound:
		return external.ErrNotFound
	case status == http.StatusConflict:
		return external.ErrExists
	case status == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0: a minute
		return external.Throttled(time.Duration(min(seconds, 3600))*time.Second, err)
	case status >= 500, status == http.StatusRequestTimeout:
		return external.Unreachable(err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return external.Refused("Unauthorized", err)
	}
	return external.Refused("Refused", err)
}

// unreachable returns the error for a request without an answer. While the server is away, all objects show its text, so it names neither the
// URL, which differs between objects, nor the port of this machine, which differs between connections.
func unreachable(err error) error {
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = sent.Err
	}
	switch broken, ok := errors.AsType[*net.OpError](err); {
	case errors.Is(err, context.Canceled):
		return err // this process ends
	case errors.Is(err, context.DeadlineExceeded):
		return external.Unreachable(errors.New("it does not answer in time"))
	case ok:
		broken.Source = nil
	}
	return external.Unreachable(err)
}
