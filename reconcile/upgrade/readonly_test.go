package upgrade

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type answering struct{ sent int }

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	a.sent++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestReadOnly(t *testing.T) {
	const pod = "/api/v1/namespaces/default/pods/web"
	for name, tc := range map[string]struct {
		reason, method, url string
		upgrade             bool
		sent                bool
		prefix              string
	}{
		"a read":                    {"it changes nothing", "GET", pod, false, true, ""},
		"a watch":                   {"it changes nothing", "GET", "/api/v1/pods?watch=true", false, true, ""},
		"discovery":                 {"it changes nothing", "GET", "/apis", false, true, ""},
		"a dry run":                 {"the API server stores nothing", "PATCH", pod + "?dryRun=All&force=true", false, true, ""},
		"a creation as a dry run":   {"the API server stores nothing", "POST", "/api/v1/namespaces/default/pods?dryRun=All", false, true, ""},
		"a creation":                {"it is a write", "POST", "/api/v1/namespaces/default/pods", false, false, ""},
		"an update":                 {"it is a write", "PUT", pod, false, false, ""},
		"another value":             {"the API server knows All only", "PATCH", pod + "?dryRun=Some", false, false, ""},
		"two values":                {"which one counts is not obvious", "PATCH", pod + "?dryRun=All&dryRun=", false, false, ""},
		"a deletion":                {"its dry run is in the body", "DELETE", pod + "?dryRun=All", false, false, ""},
		"a command in a pod":        {"a GET with an upgrade of the protocol runs it", "GET", pod + "/exec?command=rm", true, false, ""},
		"another protocol":          {"nobody knows what it sends", "GET", "/apis/example.com/v1/namespaces/default/consoles/web", true, false, ""},
		"a command as a dry run":    {"a connection knows no dry run", "POST", pod + "/exec?command=rm&dryRun=All", false, false, ""},
		"a request to a pod":        {"the pod may write something", "GET", pod + "/proxy/delete-all", false, false, ""},
		"a request to a Service":    {"what is behind it may write something", "GET", "/api/v1/namespaces/default/services/web/proxy", false, false, ""},
		"a request to a node":       {"the kubelet runs commands too", "GET", "/k8s/clusters/c-1/api/v1/nodes/one/proxy/run", false, false, ""},
		"an object named proxy":     {"it is no connection", "GET", "/api/v1/namespaces/default/configmaps/proxy", false, true, ""},
		"a pod named exec":          {"it is no connection", "GET", "/api/v1/namespaces/default/pods/exec", false, true, ""},
		"the log of a pod":          {"it is a read", "GET", pod + "/log", false, true, ""},
		"an unknown method":         {"it is not known to be a read", "CONNECT", pod, false, false, ""},
		"a token":                   {"it would be made", "POST", "/api/v1/namespaces/default/serviceaccounts/web/token", false, false, ""},
		"the status as a dry run":   {"the API server stores nothing", "PATCH", pod + "/status?dryRun=All", false, true, ""},
		"a lease":                   {"it is a write", "PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/web", false, false, ""},
		"an event":                  {"it is a write", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", false, false, ""},
		"all objects of a kind":     {"it is a deletion", "DELETE", "/api/v1/namespaces/default/pods", false, false, ""},
		"a token as a dry run":      {"the API server returns one that is valid", "POST", "/api/v1/namespaces/default/serviceaccounts/web/token?dryRun=All", false, false, ""},
		"an eviction":               {"it is more than a write of an object", "POST", pod + "/eviction?dryRun=All", false, false, ""},
		"a binding":                 {"it is more than a write of an object", "POST", pod + "/binding?dryRun=All", false, false, ""},
		"a scale as a dry run":      {"the API server stores nothing", "PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale?dryRun=All", false, true, ""},
		"a machine that stops":      {"an aggregated API may look for its dry run in the body", "PUT", "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/web/stop?dryRun=All", false, false, ""},
		"a namespace named api":     {"it is not the beginning of the path", "PUT", "/apis/subresources.kubevirt.io/v1/namespaces/api/virtualmachines/web/stop?dryRun=All", false, false, ""},
		"a namespace":               {"the API server stores nothing", "POST", "/api/v1/namespaces?dryRun=All", false, true, ""},
		"a cluster role":            {"the API server stores nothing", "PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/web?dryRun=All", false, true, ""},
		"another path":              {"nobody knows whether it has dry runs", "POST", "/logs/write?dryRun=All", false, false, ""},
		"a proxy before the server": {"its path has a prefix", "PATCH", "/k8s/clusters/c-1/api/v1/namespaces/default/pods/web?dryRun=All", false, true, "/k8s/clusters/c-1"},
		"another proxy":             {"what is behind it is another cluster", "PATCH", "/k8s/clusters/c-2/api/v1/namespaces/default/pods/web?dryRun=All", false, false, "/k8s/clusters/c-1"},
		"a path with a dot":         {"a proxy may take it out", "GET", pod + "/./exec", false, false, ""},
		"a path with two slashes":   {"a proxy may take one out", "GET", pod + "//exec", false, false, ""},
		"an encoded path":           {"the API server decodes it", "GET", pod + "/%65xec", false, false, ""},
		"a value after a semicolon": {"it is dropped", "PATCH", pod + "?x;dryRun=All", false, false, ""},
		"another case":              {"the API server does not know it", "PATCH", pod + "?dryrun=All", false, false, ""},
		"an empty value of dryRun":  {"it is a write", "POST", "/api/v1/namespaces/default/pods?dryRun=", false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.url, nil)
			require.NoError(t, err)
			if tc.upgrade {
				request.Header.Set("Upgrade", "websocket")
			}
			server := &answering{}
			response, err := readOnly{server, tc.prefix}.RoundTrip(request)
			if tc.sent {
				require.NoError(t, err, tc.reason)
				require.NoError(t, response.Body.Close())
				require.Equal(t, 1, server.sent)
				return
			}
			require.ErrorIs(t, err, errNotSent, tc.reason)
			require.Zero(t, server.sent)
		})
	}
}
