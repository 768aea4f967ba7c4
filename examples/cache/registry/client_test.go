package registry_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

func TestClient(t *testing.T) {
	fake := registrytest.New()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	c, err := registry.New(server.URL, nil)
	require.NoError(t, err)

	for range 2 {
		require.NoError(t, c.Put(t.Context(), web, "web.shop.svc:6379"))
		assert.Equal(t, map[string]string{"shop/web": "web.shop.svc:6379"}, fake.Entries())
		address, err := c.Get(t.Context(), web)
		require.NoError(t, err)
		assert.Equal(t, "web.shop.svc:6379", address)
	}
	for range 2 {
		require.NoError(t, c.Delete(t.Context(), web), "it may be gone already")
		assert.Empty(t, fake.Entries())
		address, err := c.Get(t.Context(), web)
		require.NoError(t, err)
		assert.Empty(t, address)
	}
}

func TestClientErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	c, err := registry.New(server.URL, nil)
	require.NoError(t, err)
	require.ErrorContains(t, c.Put(t.Context(), web, "web.shop.svc:6379"), "PUT "+server.URL+"/caches/shop/web: 418 I'm a teapot")
	require.ErrorContains(t, c.Delete(t.Context(), web), "DELETE "+server.URL+"/caches/shop/web: 418 I'm a teapot")
	server.Close()
	require.ErrorContains(t, c.Put(t.Context(), web, "web.shop.svc:6379"), "connection refused")
}

func TestNew(t *testing.T) {
	tests := map[string]struct{ reason, address, want string }{
		"URL":      {"it is one", "https://registry.example.com/v1", ""},
		"No host":  {"nothing could be sent", "http://", `"http:" is no URL of a registry: write it as http://registry.example.com`},
		"No URL":   {"a host needs http://", "registry.example.com", "is no URL of a registry"},
		"Garbage":  {"it cannot be parsed", "http://[", "missing ']'"},
		"Password": {"an error must not show it", "ftp://ann:secret@registry", `"ftp://ann:xxxxx@registry" is no URL of a registry`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := registry.New(tc.address, nil)
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
			} else {
				require.ErrorContains(t, err, tc.want, tc.reason)
			}
		})
	}
}
