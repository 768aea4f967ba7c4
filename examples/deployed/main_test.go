//go:build !race

// Programs are built and run here, which the race detector does not see.

// Package deployed deploys each example on a real control plane, as `make deploy` does, and walks through its README there. The
// operators run as the programs that their Dockerfiles build, with what their pods provide.
package deployed

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// scratch is a folder that is removed after all tests.
var scratch string

func TestMain(m *testing.M) {
	operatortest.Main(m, stopDatabase, func() { os.RemoveAll(scratch) }, releaseLayers)
}

// start starts the control plane that all tests share. It has the CRDs from the beginning: the garbage collector finds kinds that
// are installed later only after a while.
var start = sync.OnceValues(func() (cp *controlplane.ControlPlane, err error) {
	if scratch, err = os.MkdirTemp("", "deployed"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(scratch, "policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	options := controlplane.Options{Controllers: true, CRDs: []string{"testdata"}, APIServerArgs: []string{
		"--audit-policy-file=" + filepath.Join(scratch, "policy.yaml"), "--audit-log-path=" + auditLog(),
	}}
	for _, e := range examples {
		options.CRDs = append(options.CRDs, filepath.Join("..", e.name, "config", "crd", "bases"))
	}
	return controlplane.Start(context.Background(), options)
})

func newNode(t *testing.T) *node {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane; run without -short")
	}
	cp, err := start()
	require.NoError(t, err)
	c, err := client.New(cp.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	return &node{c, cp}
}

var server *mariadb.Server // nil until it is needed

// database starts the server that the databaseuser operator is deployed for.
var database = sync.OnceValues(func() (s *mariadb.Server, err error) {
	server, err = mariadb.Start(context.Background())
	return server, err
})

func stopDatabase() {
	if server != nil {
		_ = server.Stop()
	}
}
