package test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// program is the operator as a process of its own, as it is deployed.
type program struct {
	*exec.Cmd
	output  buffer
	metrics string // address
}

type buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}

// start starts the program and waits until it serves its metrics. It is stopped when the test ends.
func (n *tenant) start(t *testing.T, db *database, args ...string) *program {
	t.Helper()
	path := operatortest.Compile(t)
	credentials := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "username"), []byte(db.Admin().User+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "password"), []byte(db.Admin().Password+"\n"), 0o600))
	args = append([]string{"--target=" + n.unique("SHOP"), "--namespaces=" + n.Namespace, "--database-address=" + db.Address(), "--database-credentials=" + credentials,
		"--health-probe-bind-address=0", "--metrics-authorization=false", "--zap-log-level=debug"}, args...)
	for {
		p := &program{metrics: freeAddress(t)}
		p.Cmd = exec.Command(path, append(args, "--metrics-bind-address="+p.metrics)...)
		p.Env = append(os.Environ(), "KUBECONFIG="+n.ControlPlane.Kubeconfig())
		p.Stdout, p.Stderr = &p.output, &p.output
		require.NoError(t, p.Start())
		ended, wanted := make(chan error, 1), true
		go func() { ended <- p.Wait() }()
		t.Cleanup(func() {
			if wanted {
				assert.NoError(t, p.Process.Signal(syscall.SIGTERM))
				assert.NoError(t, <-ended, "it ends in order")
			}
		})
		if p.serves(t, ended) {
			return p
		}
		wanted = false
		require.Contains(t, p.output.String(), "address already in use", "it has ended")
	}
}

// metricsClient trusts the certificate that the program makes for itself.
var metricsClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// freeAddress returns an address that nobody listens on. Another process may take it before it is used.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// serves waits until the program serves its metrics, and returns false if it has ended before.
func (p *program) serves(t *testing.T, ended <-chan error) (served bool) {
	t.Helper()
	operatortest.Eventually(t, "the program serves its metrics or has ended", func(c *assert.CollectT) {
		if len(ended) > 0 {
			return
		}
		response, err := metricsClient.Get("https://" + p.metrics + "/metrics")
		if assert.NoError(c, err) {
			served = true
			assert.NoError(c, response.Body.Close())
		}
	})
	return served && len(ended) == 0
}

// TestPasswordsAreSecret checks that passwords appear nowhere but in Secrets and in the database, whatever fails.
func TestPasswordsAreSecret(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t, mariadb.WithSQLMode("ANSI_QUOTES")))
	p := n.start(t, db)
	const canary = "Kanarienvogel"
	passwords := map[string]string{
		"fine": canary + "1", "quoted": canary + `2 '";\`, "nul": canary + "3\x00", "not-utf8": canary + "\xff", "long": strings.Repeat(canary, 800),
		"exists": canary + "5", "grants": canary + "6", "no-user": canary + "7", "refused": canary + "8",
	}
	reasons := map[string]string{"fine": "ProvisionSucceeded", "quoted": "ProvisionSucceeded", "nul": "ProvisionFailed", "not-utf8": "ProvisionFailed",
		"long": "ProvisionSucceeded", "exists": "AccountExists", "grants": "ProvisionFailed", "no-user": "ProvisionFailed", "refused": "ProvisionFailed"}
	db.execute(t, "CREATE USER `"+n.unique("exists")+"`", "CREATE ROLE `"+n.unique("refused")+"`")
	for name, password := range passwords {
		n.setPassword(t, name, password)
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) {
			switch name {
			case "grants":
				u.Spec.Grants = []userv1alpha1.Grant{{Database: "missing", Table: "missing", Privileges: []privilege{"SELECT"}}}
			case "no-user":
				u.Spec.User = ""
			case "refused":
				u.Spec.Hosts = []string{strings.Repeat("h", 255)} // MariaDB takes 255, and MySQL too
				u.Spec.User = "operator"
			}
		})
	}
	for name, reason := range reasons {
		n.settled(t, name, reason)
	}
	require.NoError(t, db.Down())
	n.setPassword(t, "fine", canary+"9")
	n.settled(t, "fine", "DatabaseUnreachable")
	require.NoError(t, db.Up(t.Context()))
	n.provisioned(t, "fine")
	require.NoError(t, db.login(n.unique("fine"), canary+"9"))
	n.setPassword(t, "fine", "")
	n.settled(t, "fine", "PasswordEmpty")

	n.delete(t, "quoted")
	n.Gone(t, n.user("quoted"))
	n.setPassword(t, "fine", canary+"10")
	n.provisioned(t, "fine") // after the events of the other one
	assert.NotContains(t, p.output.String(), `"quoted\\" not found`, "what is gone is no error")

	response, err := metricsClient.Get("https://" + p.metrics + "/metrics")
	require.NoError(t, err)
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Contains(t, string(metrics), "opblocks_step_results_total")
	objects := n.Kubectl(t, "get", "databaseusers,events,events.events.k8s.io,leases,configmaps", "--output", "yaml", "--show-managed-fields")
	assert.Contains(t, objects, "managedFields")
	assert.Contains(t, objects, "ProvisionFailed")
	assert.Contains(t, p.output.String(), "Step failed")
	hash := db.lines(t, "SELECT CONCAT(authentication_string, '') FROM mysql.user WHERE User = ?", n.unique("fine"))[0]
	for what, text := range map[string]string{"log": p.output.String(), "metrics": string(metrics), "objects": objects} {
		for _, secret := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))[:16], hash, hash[1:], db.Admin().Password} {
			assert.NotContains(t, text, secret, what)
		}
	}
}

// TestCommandLine checks that the program exits with a message if a flag is missing or wrong.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	_, err := shared() // so that a machine without a database says so once
	require.NoError(t, err)
	path := operatortest.Compile(t)
	for args, says := range map[string]string{
		"":                                    "give --target",
		"--target=a":                          "give --database-address",
		"--target=a/b --database-address=x:1": "--target: a valid label must",
		"--target= --database-address=x:1":    "give --target",
		"--target=a --database-address=x":     "--database-address: address x: missing port in address",
		"--target=a --database-address=x:1 --resync=0s":                     "a --resync that is more than 0",
		"--target=a --database-address=x:1 --database-credentials=/nowhere": "--database-credentials: open /nowhere/username: no such file or directory",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), operatortest.Patience)
		out, err := exec.CommandContext(ctx, path, strings.Fields(args)...).CombinedOutput()
		cancel()
		assert.Error(t, err, args)
		assert.Contains(t, string(out), says, args)
	}
}
