package queue_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/topic/queue"
	"github.com/opblocks/opblocks/examples/topic/queue/queuetest"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// connect returns a client of a server with this handler, behind a real connection.
func connect(t *testing.T, handler http.Handler, token string) *queue.Client {
	t.Helper()
	listening := httptest.NewServer(handler)
	t.Cleanup(listening.Close)
	server, err := queue.NewServer(listening.URL+"/v1", nil)
	require.NoError(t, err)
	c, err := server.Connect(secrets.Sensitive(token))
	require.NoError(t, err)
	return c
}

func TestClient(t *testing.T) {
	memory := &queuetest.Server{}
	c := connect(t, http.StripPrefix("/v1", queuetest.Handler(memory)), " "+queuetest.Token+"\n")
	want := queue.Settings{Owner: "me", Partitions: 3, RetentionHours: 24}

	_, err := c.Get(t.Context(), "shop.orders")
	require.ErrorIs(t, err, external.ErrNotFound)
	require.NoError(t, c.Create(t.Context(), "shop.orders", want))
	require.ErrorIs(t, c.Create(t.Context(), "shop.orders", want), external.ErrExists)
	want.Partitions = 6
	require.NoError(t, c.Update(t.Context(), "shop.orders", want))
	found, err := c.Get(t.Context(), "shop.orders")
	require.NoError(t, err)
	assert.Equal(t, want, found)
	require.NoError(t, c.Delete(t.Context(), "shop.orders"))
	require.ErrorIs(t, c.Delete(t.Context(), "shop.orders"), external.ErrNotFound)
	assert.Empty(t, memory.Things())
}

// transport is a network that fails.
type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestNoAnswer checks what is said of requests without an answer. Neither the token nor what differs between two requests is in it.
func TestNoAnswer(t *testing.T) {
	broken := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 54321}, Err: net.ErrClosed}
	tests := map[string]struct {
		reason    string
		transport transport
		want      string
	}{
		"Broken": {"the port of this machine differs", func(*http.Request) (*http.Response, error) { return nil, broken }, "the server cannot be reached: read tcp: use of closed network connection"},
		"Within": {"it breaks within the answer", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(broken))}, nil
		}, "the server cannot be reached: read tcp: use of closed network connection"},
		"Hangs": {"the client has a timeout", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, "the server cannot be reached: it does not answer in time"},
		"Ends": {"the process ends, and the server is well", func(*http.Request) (*http.Response, error) { return nil, context.Canceled }, "context canceled"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, err := queue.NewServer("https://queue.example.net", tc.transport)
				require.NoError(t, err)
				c, err := server.Connect([]byte(queuetest.Token))
				require.NoError(t, err)
				_, err = c.Get(t.Context(), "shop.orders")
				assert.EqualError(t, err, tc.want, tc.reason)
			})
		})
	}
}

func TestNoRedirection(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	t.Cleanup(elsewhere.Close)
	_, err := connect(t, http.RedirectHandler(elsewhere.URL, http.StatusPermanentRedirect), queuetest.Token).Get(t.Context(), "shop.orders")
	assert.EqualError(t, err, "the server answers 308 Permanent Redirect")
}

func TestBadInput(t *testing.T) {
	for address, reason := range map[string]string{
		"queue.example.net": "a host needs https://", "https://": "there is no host", "http://[": "it cannot be parsed", "": "it is empty",
		"ftp://queue.example.net": "another protocol", "https://ann:secret@queue.example.net": "the token is the only credential",
	} {
		_, err := queue.NewServer(address, nil)
		require.Error(t, err, reason)
		assert.NotContains(t, err.Error(), "secret", reason)
	}
	server, err := queue.NewServer("https://queue.example.net", nil)
	require.NoError(t, err)
	for token, reason := range map[string]string{"": "it is empty", " \n": "as above", "two words": "a space", "a\r\nb": "another header", "é": "not ASCII"} {
		_, err := server.Connect(secrets.Sensitive(token))
		assert.ErrorContains(t, err, "the token is empty, or has", reason)
	}
}
