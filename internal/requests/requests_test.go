package requests

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestName(t *testing.T) {
	tests := map[string]struct{ reason, method, path, want string }{
		"core":           {"an object of the core group", "GET", "/api/v1/namespaces/ns/pods/a", "GET pods"},
		"group":          {"an object of a named group", "POST", "/apis/apps/v1/namespaces/ns/deployments", "POST deployments"},
		"status":         {"subresources are told apart", "PATCH", "/apis/x.io/v1/namespaces/ns/things/a/status", "PATCH things/status"},
		"cluster-scoped": {"a namespace is an object too", "DELETE", "/api/v1/namespaces/ns", "DELETE namespaces"},
		"list":           {"informers list and watch", "GET", "/api/v1/namespaces/ns/pods", ""},
		"discovery":      {"once a process", "GET", "/apis/apps/v1", ""},
		"event":          {"events are not counted", "POST", "/apis/events.k8s.io/v1/namespaces/ns/events", ""},
		"lease":          {"leader election is not counted", "PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a", ""},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			r, err := http.NewRequest(tc.method, "http://localhost"+tc.path, nil)
			require.NoError(t, err)
			require.Equal(t, tc.want, name(r), tc.reason)
		})
	}
}
