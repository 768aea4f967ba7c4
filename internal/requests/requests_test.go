package requests

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestName(t *testing.T) {
	tests := map[string]struct{ reason, method, path, want string }{
		"CoreGroup":     {"an object of the core group", "GET", "/api/v1/namespaces/ns/pods/a", "GET pods"},
		"NamedGroup":    {"an object of a named group", "POST", "/apis/apps/v1/namespaces/ns/deployments", "POST deployments"},
		"Status":        {"subresources have names of their own", "PATCH", "/apis/x.io/v1/namespaces/ns/things/a/status", "PATCH things/status"},
		"ClusterScoped": {"a namespace is an object too", "DELETE", "/api/v1/namespaces/ns", "DELETE namespaces"},
		"List":          {"informers list and watch", "GET", "/api/v1/namespaces/ns/pods", ""},
		"Discovery":     {"it happens once a process", "GET", "/apis/apps/v1", ""},
		"Event":         {"events are not counted", "POST", "/apis/events.k8s.io/v1/namespaces/ns/events", ""},
		"Lease":         {"leader election is not counted", "PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a", ""},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			r, err := http.NewRequest(tc.method, "http://localhost"+tc.path, nil)
			require.NoError(t, err)
			require.Equal(t, tc.want, name(r), tc.reason)
		})
	}
}
