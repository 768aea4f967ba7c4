//go:build !race

// Programs are built and run here, which the race detector does not see.

package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkout is the root of the repository.
const checkout = "../.."

// root is its path, also from another folder.
var root, _ = filepath.Abs(checkout)

// executeIn runs the command with some flags in place of others, in an empty folder. It returns the exit code and what the command
// printed.
func executeIn(ctx context.Context, t *testing.T, folder string, flags map[string]string) (code int, output string) {
	t.Helper()
	var out bytes.Buffer
	code = execute(ctx, arguments(filepath.Join(folder, "shop"), flags), &out, &out)
	return code, out.String()
}

// arguments returns the arguments of the command with which it writes to a folder, with some flags in place of others.
func arguments(folder string, flags map[string]string) (all []string) {
	values := map[string]string{"from": "memcached", "module": "example.com/shop", "kind": "Shop", "dir": folder, "replace": root, "skip-tidy": "true"}
	maps.Copy(values, flags)
	for name, value := range values {
		all = append(all, "-"+name+"="+value)
	}
	return all
}

func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		reason string
		flags  map[string]string
		want   string
	}{
		"NoExample":        {"there is no default", map[string]string{"from": ""}, "name an example to copy by -from: app, cache, databaseuser, eru, memcached, topic"},
		"UnknownExample":   {"the names are listed", map[string]string{"from": "redis"}, "-from redis: there is no such example; choose from app, cache"},
		"SharedFolder":     {"the folder internal is not an example", map[string]string{"from": "internal"}, "-from internal: there is no such example"},
		"NoModule":         {"there is no default", map[string]string{"module": ""}, "name the path of the new module"},
		"ModuleSpace":      {"a path has no spaces", map[string]string{"module": "example.com/my shop"}, "-module example.com/my shop: the path"},
		"ModuleUp":         {"a path is clean", map[string]string{"module": "example.com/../shop"}, "-module example.com/../shop: the path"},
		"ModuleOurs":       {"it is not the user's", map[string]string{"module": modulePath + "/shop"}, "choose a path of your own"},
		"NoKind":           {"there is no default", map[string]string{"kind": ""}, "name the kind"},
		"KindLower":        {"a Go type that is exported", map[string]string{"kind": "shop"}, "-kind shop: a kind begins with an upper-case letter"},
		"KindHyphen":       {"a Go identifier", map[string]string{"kind": "Web-Shop"}, "-kind Web-Shop: a kind begins"},
		"KindKeyword":      {"variables have its name", map[string]string{"kind": "Type"}, "-kind Type: choose another one, since variables are named type"},
		"KindPredeclared":  {"variables would hide it", map[string]string{"kind": "Error"}, "-kind Error: choose another one"},
		"KindOfKubernetes": {"kubectl would mean the other", map[string]string{"kind": "Service"}, "-kind Service: choose another one, since Kubernetes has this kind"},
		"KindList":         {"lists end with it", map[string]string{"kind": "ShopList"}, "-kind ShopList: choose another one"},
		"KindInUse":        {"a variable of the example has its name", map[string]string{"kind": "Reconcile", "from": "app"}, `-kind Reconcile: choose another one, since the code of example app uses the name reconcile`},
		"KindAsFile":       {"a file of the example has its name", map[string]string{"kind": "Status", "from": "eru"}, "-kind Status: choose another one"},
		"GroupLabel":       {"groups without a dot are Kubernetes'", map[string]string{"group": "apps"}, "-group apps: a group is a domain name"},
		"GroupUpper":       {"DNS names are in lower case", map[string]string{"group": "Shop.example.com"}, "-group Shop.example.com: a group"},
		"GroupReserved":    {"these need an approval", map[string]string{"group": "shop.k8s.io"}, "-group shop.k8s.io: choose another one"},
		"Version":          {"the form of versions is fixed", map[string]string{"version": "1.0"}, "-version 1.0: a version of an API looks like"},
		"Library":          {"a branch is not a version", map[string]string{"library": "main"}, "-library main: name a version"},
		"Runtime":          {"the library does not work with it", map[string]string{"controller-runtime": "v0.23"}, "-controller-runtime v0.23: choose from v0.24, v0.25"},
		"Replace":          {"the folder is something else", map[string]string{"replace": "."}, "-replace .: the folder is not the root of a checkout"},
		"FromCheckout":     {"it requires a version that may not exist", map[string]string{"replace": ""}, "built from a checkout: pass -replace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			code, output := executeIn(t.Context(), t, folder, tc.flags)
			assert.Equal(t, 2, code, tc.reason)
			assert.Contains(t, output, tc.want, tc.reason)
			assert.Equal(t, 1, strings.Count(output, "\n"), "one line: %s", output)
			assertEmpty(t, folder)
		})
	}
}

func TestBadFolder(t *testing.T) {
	tests := map[string]struct {
		reason  string
		prepare func(t *testing.T, folder string)
		want    string
	}{
		"NotEmpty": {"files would be overwritten", func(t *testing.T, folder string) {
			require.NoError(t, os.MkdirAll(filepath.Join(folder, "shop", "mine"), 0o755))
		}, "the folder is not empty"},
		"File": {"a folder is needed", func(t *testing.T, folder string) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "shop"), nil, 0o644))
		}, "a file is in the way"},
		"NoParent": {"a typing error in the path would create folders", func(t *testing.T, folder string) {
			require.NoError(t, os.Remove(folder))
		}, "create it first"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "here")
			require.NoError(t, os.Mkdir(folder, 0o755))
			tc.prepare(t, folder)
			before := tree(t, filepath.Dir(folder))
			code, output := executeIn(t.Context(), t, folder, nil)
			assert.Equal(t, 2, code, tc.reason)
			assert.Contains(t, output, tc.want, tc.reason)
			assert.Equal(t, before, tree(t, filepath.Dir(folder)))
		})
	}
}

// TestGoFails checks the messages when the command go is missing, is old, or cannot download, and that nothing is left.
func TestGoFails(t *testing.T) {
	tests := map[string]struct {
		reason string
		script string // the shell script that stands for the command go
		want   string
	}{
		"Missing":   {"go is not in PATH", "", "the command go is missing; install Go 1.26 or newer: https://go.dev/dl/"},
		"Old":       {"it may not download another one", "echo 'go: go.mod requires go >= 1.26.0 (running go 1.20; GOTOOLCHAIN=local)' >&2; exit 1", "install Go 1.26 or newer, see https://go.dev/dl/: go: go.mod requires go >= 1.26.0"},
		"NoNetwork": {"modules are missing", "test \"$1\" = list || { echo 'dial tcp: lookup proxy.golang.org: no such host' >&2; exit 1; }", "go mod tidy failed: dial tcp: lookup proxy.golang.org: no such host; is the network or GOPROXY missing?"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			programs := t.TempDir()
			if tc.script != "" {
				require.NoError(t, os.WriteFile(filepath.Join(programs, "go"), []byte("#!/bin/sh\n"+tc.script+"\n"), 0o755))
			}
			t.Setenv("PATH", programs)
			folder := t.TempDir()
			code, output := executeIn(t.Context(), t, folder, map[string]string{"skip-tidy": "false"})
			assert.Equal(t, 1, code, tc.reason)
			assert.Contains(t, output, tc.want, tc.reason)
			assertEmpty(t, folder)
		})
	}
}

// TestInterrupted ends the command while go mod tidy runs.
func TestInterrupted(t *testing.T) {
	programs := t.TempDir()
	running := filepath.Join(programs, "running")
	require.NoError(t, syscall.Mkfifo(running, 0o600))
	script := "#!/bin/sh\ntest \"$1\" = list || read line < " + running + "\n" // until somebody writes
	require.NoError(t, os.WriteFile(filepath.Join(programs, "go"), []byte(script), 0o755))
	t.Setenv("PATH", programs)
	ctx, interrupt := context.WithCancel(t.Context())
	opened := make(chan *os.File, 1)
	go func() {
		file, err := os.OpenFile(running, os.O_WRONLY, 0) // returns when the script reads
		assert.NoError(t, err)
		interrupt()
		opened <- file
	}()
	folder := t.TempDir()
	code, output := executeIn(ctx, t, folder, map[string]string{"skip-tidy": "false"})
	reader, err := os.OpenFile(running, os.O_RDONLY|syscall.O_NONBLOCK, 0) // for the case that the script has not run
	require.NoError(t, err)
	assert.NoError(t, (<-opened).Close())
	assert.NoError(t, reader.Close())
	assert.Equal(t, 1, code, output)
	assert.Contains(t, output, "opblocks: interrupted; nothing was written\n")
	assertEmpty(t, folder)
}

// TestEmptyFolder copies into a folder that exists: its parent, or its path, may be another file system or the shell's.
func TestEmptyFolder(t *testing.T) {
	tests := map[string]struct {
		reason string
		flags  map[string]string
	}{
		"Replaced": {"the path of the checkout is relative", nil},
		"Released": {"only this folder may be writable", map[string]string{"replace": "", "library": "v0.1.0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(folder, "shop"), 0o755))
			t.Chdir(filepath.Join(folder, "shop"))
			flags := map[string]string{"dir": "."}
			maps.Copy(flags, tc.flags)
			code, output := executeIn(t.Context(), t, folder, flags)
			require.Zero(t, code, "%s: %s", tc.reason, output)
			assert.Contains(t, output, "kind Shop, of the API shop.example.com/v1alpha1")
			assert.FileExists(t, "controller/controller.go", "in the folder itself")
			for _, path := range tree(t, folder) {
				assert.NotContains(t, path, "new-operator", "the folder in which it was made is gone")
			}
		})
	}
}

// TestWorkspace checks that the command mentions a workspace that does not list the new module.
func TestWorkspace(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.work"), []byte("go 1.26.0\n"), 0o644))
	code, output := executeIn(t.Context(), t, folder, nil)
	assert.Zero(t, code)
	assert.Contains(t, output, "what "+filepath.Join(folder, "go.work")+" lists. Add the new module: go work use "+filepath.Join(folder, "shop"))
}

func assertEmpty(t *testing.T, folder string) {
	t.Helper()
	assert.Empty(t, tree(t, folder), "something is left behind")
}

// tree returns the paths below a folder.
func tree(t *testing.T, folder string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if path != folder {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// TestMakeVariables checks that somebody who has run make new reads nothing of flags.
func TestMakeVariables(t *testing.T) {
	code, output := executeIn(t.Context(), t, t.TempDir(), map[string]string{"make": "true", "kind": "shop"})
	assert.Equal(t, 2, code)
	assert.Equal(t, "opblocks: KIND=shop: a kind begins with an upper-case letter and has letters and digits only, such as Shop\n", output)

	code, output = executeIn(t.Context(), t, t.TempDir(), map[string]string{"make": "true"})
	assert.Equal(t, 0, code)
	assert.Contains(t, output, "To choose another one, remove ")
	assert.Contains(t, output, " and run this again with GROUP=NAME.\n")
	assert.NotContains(t, output, "-group")
}

// TestTargets runs targets of a copied Makefile with programs that only print what they are called with.
func TestTargets(t *testing.T) {
	folder := t.TempDir()
	code, output := executeIn(t.Context(), t, folder, nil)
	require.Equal(t, 0, code, output)
	programs := t.TempDir()
	for _, name := range []string{"docker", "go", "kubectl"} {
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\ntest \"$1\" = get || echo "+name+" \"$@\"\n"), 0o755))
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	run := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-s", "-C", filepath.Join(folder, "shop"), "GOPROXY="}, args...)...)
		command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	assert.Equal(t, "docker build -t shop:v1 --build-arg BASE_IMAGE=example.com/base .\n", run("docker-build", "IMG=shop:v1", "BASE_IMAGE=example.com/base"))
	assert.Equal(t, "go test -timeout 30m -short ./...\n", run("test", "ARGS=-short"))
	assert.Equal(t, "docker push shop:v1\n", run("docker-push", "IMG=shop:v1"))
	for overlay, namespace := range map[string]string{"default": "", "namespaced": "team-a"} {
		assert.Contains(t, run("undeploy", "OVERLAY="+overlay, "NAMESPACE="+namespace), "kubectl delete --ignore-not-found")
		kustomization, err := os.ReadFile(filepath.Join(folder, "shop", "bin", "deploy", "kustomization.yaml"))
		require.NoError(t, err)
		want := "resources: [../../config/" + overlay + "]\n"
		if namespace != "" {
			want += "namespace: " + namespace + "\n"
		}
		assert.Equal(t, want, string(kustomization))
	}
}
