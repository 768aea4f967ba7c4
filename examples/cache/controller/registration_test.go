package controller_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	"github.com/opblocks/opblocks/reconcile"
)

// handled is a transport that calls a handler, without a network. It counts the requests that write.
type handled struct {
	handler http.Handler
	writes  int
}

func (h *handled) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		h.writes++
	}
	answer := httptest.NewRecorder()
	h.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}

func TestRegistration(t *testing.T) {
	const address = "cache-sample-0.cache-sample.default.svc:6379"
	tests := map[string]struct {
		reason string
		before string // the address that is registered before the first pass
		writes int
	}{
		"absent":          {"it is registered", "", 1},
		"registered":      {"an earlier process has registered it", address, 0},
		"another address": {"clients would not find the server", "elsewhere:6379", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			entries := registrytest.New()
			if tc.before != "" {
				put := httptest.NewRequest(http.MethodPut, "/caches/default/cache-sample", strings.NewReader(`{"address":"`+tc.before+`"}`))
				entries.ServeHTTP(httptest.NewRecorder(), put)
			}
			transport := &handled{handler: entries}
			client, err := registry.New("http://registry.example.com", transport)
			require.NoError(t, err)
			h := newHarness(t, identified())
			h.reconciler = reconcile.New(h.counting(), (&controller.Operator{Registry: client}).Steps()...)
			c := h.reconcile(t, sample())
			assert.Equal(t, map[string]string{"default/cache-sample": address}, entries.Entries(), tc.reason)
			assert.Equal(t, tc.writes, transport.writes, tc.reason)
			assert.Equal(t, address, c.Status.RegisteredAddress)
			assert.True(t, conditions.IsTrue(c.Status.Conditions, "Registered"))
		})
	}
}
