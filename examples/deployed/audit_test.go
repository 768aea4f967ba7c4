//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func auditLog() string { return filepath.Join(scratch, "audit.log") }

// auditPolicy makes the API server log the requests of ServiceAccounts. A watch is logged when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// request is a request in the audit log.
type request struct {
	Verb           string
	RequestURI     string
	User           struct{ Username string }
	ObjectRef      *struct{ Resource, Namespace string } // nil without a resource, as for discovery
	ResponseStatus struct{ Code int }
}

// requests returns the requests of a ServiceAccount so far.
func requests(t *testing.T, namespace, account string) (sent []request) {
	t.Helper()
	text, err := os.ReadFile(auditLog())
	require.NoError(t, err)
	user := "system:serviceaccount:" + namespace + ":" + account
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") || !strings.Contains(line, user) {
			continue // it is being written, or of another one
		}
		var r request
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if r.User.Username == user {
			sent = append(sent, r)
		}
	}
	return sent
}

// refused returns the requests that were answered with 403.
func refused(sent []request) (all []string) {
	for _, r := range sent {
		if r.ResponseStatus.Code == 403 {
			all = append(all, r.Verb+" "+r.RequestURI)
		}
	}
	return all
}

// outside returns the requests for objects that are not in a namespace.
func outside(sent []request, namespace string) (all []string) {
	for _, r := range sent {
		if r.ObjectRef != nil && r.ObjectRef.Namespace != namespace {
			all = append(all, r.Verb+" "+r.RequestURI)
		}
	}
	return all
}
