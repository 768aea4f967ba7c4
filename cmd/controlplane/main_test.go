package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const crds = "../../reconcile/reconciletest/controlplane/testdata/widgets.yaml"

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	for _, args := range [][]string{{"-h"}, {"build", "-help"}} {
		stdout.Reset()
		assert.Zero(t, run(t.Context(), args, &stdout, &stderr))
		assert.Contains(t, stdout.String(), "controlplane kubeconfig namespace/name\n")
		assert.Contains(t, stdout.String(), "  -crds path\n")
		assert.Empty(t, stderr.String())
	}
}

func TestWrongArguments(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Flag": {
			"there is no such flag", []string{"-no-such-flag"}, 2,
			"controlplane: flag provided but not defined: -no-such-flag; see controlplane -h\n",
		},
		"DetachedCommand": {
			"the command would end, and the control plane would not", []string{"-detach", "--", "true"}, 2,
			"controlplane: -detach and a command exclude each other: the control plane ends with the command; see controlplane -h\n",
		},
		"ServiceAccount": {
			"the namespace is missing", []string{"kubeconfig", "operator"}, 2,
			"controlplane: name one ServiceAccount as namespace/name; see controlplane -h\n",
		},
		"BuildArgument": {
			"a version is named by its flag", []string{"build", "v1.34.2"}, 2,
			"controlplane: build takes no argument \"v1.34.2\"; see controlplane -h\n",
		},
		"NegativeNodes": {
			"no such cluster can be meant", []string{"-nodes", "-1"}, 2,
			"controlplane: invalid value \"-1\" for flag -nodes: name a number of 0 or more; see controlplane -h\n",
		},
		"NodesWord": {
			"it is no number", []string{"-nodes=three"}, 2,
			"controlplane: invalid value \"three\" for flag -nodes: name a number of 0 or more; see controlplane -h\n",
		},
		"CommandMissing": {
			"a script's variable may be empty", []string{"-controllers", "--"}, 2,
			"controlplane: name a command after --; see controlplane -h\n",
		},
		"UnknownCommand": {
			"a mistyped subcommand is not run as a command", []string{"start"}, 2,
			"controlplane: unknown command start: subcommands come first, and a command to run follows --; see controlplane -h\n",
		},
		"UnknownCommandAfterFlags": {
			"it is not run either", []string{"-controllers", "kubectl", "--", "get"}, 2,
			"controlplane: unknown command kubectl: subcommands come first, and a command to run follows --; see controlplane -h\n",
		},
		"CRDsMissing": {
			"the error comes before anything is built or started", []string{"-crds", "testdata/missing"}, 1,
			"controlplane: install the CustomResourceDefinitions in testdata/missing: stat testdata/missing: no such file or directory\n",
		},
		"CRDsInSubfolder": {
			"controller-gen writes them into config/crd/bases", []string{"-crds", "../../reconcile/reconciletest/controlplane"}, 1,
			"controlplane: no CustomResourceDefinition in ../../reconcile/reconciletest/controlplane: " +
				"name the folder that has the YAML files themselves, since subfolders are not read\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, tc.code, run(t.Context(), tc.args, &stdout, &stderr), tc.reason)
			assert.Equal(t, tc.want, stderr.String(), tc.reason)
			assert.Empty(t, stdout.String())
		})
	}
}

func TestStartFlags(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   controlplane.Options
	}{
		"Default":          {"only etcd and kube-apiserver run", nil, controlplane.Options{}},
		"Controllers":      {"the package has the number of nodes", []string{"-controllers"}, controlplane.Options{Controllers: true}},
		"Nodes":            {"the controllers run too", []string{"-nodes=5"}, controlplane.Options{Nodes: new(5)}},
		"NoNodes":          {"the controllers run without nodes", []string{"-nodes=0"}, controlplane.Options{Nodes: new(0)}},
		"ControllersAlone": {"0 is a number like another", []string{"-controllers", "-nodes=0"}, controlplane.Options{Controllers: true, Nodes: new(0)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set, s := startFlags()
			require.NoError(t, parse(set, tc.args))
			assert.Equal(t, tc.want, s.options, tc.reason)
		})
	}
}

func TestKubeconfigWithoutCluster(t *testing.T) {
	folder := t.TempDir()
	missing, empty, broken := filepath.Join(folder, "missing"), filepath.Join(folder, "empty"), filepath.Join(folder, "broken")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.WriteFile(broken, []byte("current-context: no-such-context"), 0o600))
	unset := filepath.Join(folder, "unset")
	require.NoError(t, os.WriteFile(unset, []byte("clusters: [{name: one, cluster: {server: https://127.0.0.1:1}}]"), 0o600))
	home := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	clientcmd.RecommendedHomeFile = filepath.Join(folder, "config")
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // otherwise, in a pod, the rights of its ServiceAccount would be taken

	tests := map[string]struct{ reason, variable, want string }{
		"NoVariable": {"the file of kubectl is read", "", "there is no kubeconfig " + clientcmd.RecommendedHomeFile + ": name the kubeconfig of a cluster by KUBECONFIG"},
		"NoFile":     {"such as of a control plane that has ended", missing, "KUBECONFIG names " + missing + ", which does not exist: name the kubeconfig of a cluster"},
		"EmptyFile":  {"kubectl writes one too", empty, "kubeconfig " + empty + " has no current context: name another file by KUBECONFIG"},
		"OneOfTwo":   {"a list may name files that do not exist", missing + ":" + empty, "kubeconfig " + missing + ", " + empty + " has no current context: name another file by KUBECONFIG"},
		"NoContext":  {"client-go says what is wrong", broken, "kubeconfig " + broken + ": invalid configuration: [context was not found for specified context: no-such-context, cluster has no server defined]"},
		"NoCurrent":  {"it has a cluster, and no context that is current", unset, "kubeconfig " + unset + " has no current context: name another file by KUBECONFIG"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.variable)
			var stdout, stderr bytes.Buffer
			assert.Equal(t, 1, run(t.Context(), []string{"kubeconfig", "default/operator"}, &stdout, &stderr), tc.reason)
			assert.Equal(t, "controlplane: "+tc.want+"\n", stderr.String(), tc.reason)
			assert.Empty(t, stdout.String())
		})
	}
}

func TestWrongVersion(t *testing.T) {
	for _, args := range [][]string{{"-kubernetes=1.34"}, {"build", "-kubernetes=1.34"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 1, run(t.Context(), args, &stdout, &stderr))
		assert.Contains(t, stderr.String(), `controlplane: "1.34" is no version of Kubernetes: name a release such as v1.`)
	}
}

func TestCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	for _, name := range []string{"KUBECONFIG", "KUBEBUILDER_ASSETS", "PATH"} {
		t.Setenv(name, os.Getenv(name)) // Setenv restores the variable after the test
	}
	script := `kubectl get crds --output=name && test -x "$KUBEBUILDER_ASSETS/kube-apiserver" && dirname "$KUBECONFIG"; exit 3`
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-crds", crds, "--", "sh", "-c", script}, &stdout, &stderr)
	assert.Equal(t, 3, code, "the command's exit code")
	assert.Empty(t, stderr.String())
	lines := strings.Fields(stdout.String())
	require.Len(t, lines, 2)
	assert.Equal(t, "customresourcedefinition.apiextensions.k8s.io/widgets.example.com", lines[0])
	assert.NoDirExists(t, lines[1], "the control plane has stopped")
}

// TestShell starts a control plane as in a shell, and asks it for a kubeconfig as in a second shell.
func TestShell(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	ctx, interrupt := context.WithCancel(t.Context())
	output, stdout := io.Pipe()
	ended := make(chan int)
	var stderr bytes.Buffer
	go func() {
		code := run(ctx, nil, stdout, &stderr)
		_ = stdout.Close()
		ended <- code
	}()
	exported := map[string]string{}
	for lines := bufio.NewScanner(output); len(exported) < 2 && lines.Scan(); {
		found := regexp.MustCompile(`^export (\w+)=(\S+)$`).FindStringSubmatch(lines.Text())
		require.Len(t, found, 3, lines.Text())
		exported[found[1]] = found[2]
	}
	assert.FileExists(t, filepath.Join(exported["KUBEBUILDER_ASSETS"], "etcd"))

	t.Setenv("KUBECONFIG", exported["KUBECONFIG"])
	config, err := clientcmd.BuildConfigFromFlags("", exported["KUBECONFIG"])
	require.NoError(t, err)
	var refusal bytes.Buffer
	require.NotZero(t, run(t.Context(), []string{"kubeconfig", "default/operator"}, io.Discard, &refusal))
	require.Contains(t, refusal.String(), `request a token of ServiceAccount default/operator: serviceaccounts "operator" not found`)
	kubectl := exec.Command(filepath.Join(exported["KUBEBUILDER_ASSETS"], "kubectl"), "create", "serviceaccount", "operator")
	created, err := kubectl.CombinedOutput()
	require.NoError(t, err, string(created))

	var kubeconfig bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"kubeconfig", "default/operator"}, &kubeconfig, os.Stderr))
	account, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Bytes())
	require.NoError(t, err)
	assert.Equal(t, config.Host, account.Host)
	assert.NotEmpty(t, account.BearerToken)
	assert.NotEqual(t, config.BearerToken, account.BearerToken, "the administrator's access is not in it")

	interrupt()
	assert.Zero(t, <-ended, stderr.String())
	assert.NoFileExists(t, exported["KUBECONFIG"])
}

func TestDetach(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-detach"}, &stdout, &stderr), stderr.String())
	found := regexp.MustCompile(`(?s)^export KUBECONFIG=(\S+)\n.*\nexport CONTROLPLANE_PID=(\d+)\n$`).FindStringSubmatch(stdout.String())
	require.Len(t, found, 3, stdout.String())
	assert.FileExists(t, found[1])
	pid, err := strconv.Atoi(found[2])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(found[1]))
		return os.IsNotExist(err)
	}, controlplane.Patience, 10*time.Millisecond)
}

func TestQuote(t *testing.T) {
	tests := map[string]struct{ reason, text, want string }{
		"Plain":  {"most paths need no quotes", "/tmp/opblocks-1/kubeconfig", "/tmp/opblocks-1/kubeconfig"},
		"Space":  {"a folder of macOS", "/Users/me/Library/Application Support", "'/Users/me/Library/Application Support'"},
		"Quote":  {"a quote ends a word in quotes", "it's", `'it'\''s'`},
		"Dollar": {"a shell would expand it", "$HOME", "'$HOME'"},
		"Empty":  {"a word needs quotes then", "", "''"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, quote(tc.text), tc.reason)
		})
	}
}
