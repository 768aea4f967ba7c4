package storageversion

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// storedObject is an object as etcd stores it.
type storedObject struct{ apiVersion, revision string }

// readStored reads the objects of a resource directly from etcd, through its JSON gateway. It returns them by name.
func readStored(t *testing.T, cp *controlplane.ControlPlane, group, resource string) map[string]storedObject {
	t.Helper()
	socket := filepath.Join(filepath.Dir(cp.Kubeconfig()), "etcd.sock")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	encode := func(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }
	prefix := "/registry/" + group + "/" + resource
	query := fmt.Sprintf(`{"key":%q,"range_end":%q}`, encode(prefix+"/"), encode(prefix+"0"))
	response, err := client.Post("http://etcd/v3/kv/range", "application/json", bytes.NewBufferString(query))
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Entries []struct {
			Key      []byte
			Value    []byte
			Revision string `json:"mod_revision"`
		} `json:"kvs"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	all := map[string]storedObject{}
	for _, entry := range answer.Entries {
		var object struct{ APIVersion string }
		require.NoError(t, json.Unmarshal(entry.Value, &object))
		all[path.Base(string(entry.Key))] = storedObject{object.APIVersion, entry.Revision}
	}
	return all
}
