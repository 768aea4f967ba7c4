//go:build !race

// Programs are built and run here, which the race detector does not see.

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/opblocks/opblocks/internal/buildfolder"
)

// TestCopies copies each example by the built program, with the library of the checkout. It checks that the copies compile with their tests,
// and that controller-gen generates what they have. What the tests of a copy show is shown in the repository. [TestGettingStarted] uses the
// Makefile of a copy, which is the same in all, and runs tests of one.
//
// A workspace joins the copies, so that the dependencies are loaded once for all of them. The copies require what the workspace of the
// repository has, so that nothing of these is compiled for them.
func TestCopies(t *testing.T) {
	folder, release, err := buildfolder.OpenEmpty("copies")
	require.NoError(t, err)
	t.Cleanup(release)
	built, release, err := buildfolder.Open("new") // if the program is up to date, it is not linked again
	require.NoError(t, err)
	t.Cleanup(release)
	program := filepath.Join(built, "new")
	runCommand(t, ".", []string{"GOWORK=" + filepath.Join(root, "go.work")}, "go", "build", "-buildvcs=false", "-o", program, ".")
	var copies []string
	for example, flags := range map[string]map[string]string{
		"app":          {"kind": "Order", "group": "shop.example.com", "version": "v1beta1"},
		"cache":        {"kind": "Queue"},
		"databaseuser": {"kind": "MailAccount", "version": "v1"},
		"eru":          {"kind": "Policy"},
		"memcached":    {"kind": "Shop"},
		"topic":        {"kind": "Stream", "version": "v1"},
	} {
		name := strings.ToLower(flags["kind"])
		flags["from"], flags["module"], flags["skip-tidy"] = example, "example.com/"+name, "false"
		runCommand(t, ".", nil, program, arguments(filepath.Join(folder, name), flags)...)
		assertRenamed(t, filepath.Join(folder, name), example)
		copies = append(copies, name)
	}
	workspace := "go 1.26.0\n\nuse (\n\t./" + strings.Join(copies, "\n\t./") + "\n)\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.work"), []byte(workspace), 0o600))
	assertCompiles(t, folder, copies)
	assertGenerated(t, folder, copies)
}

// TestOldest checks that a copy for the oldest controller-runtime requires that and Kubernetes' modules in the versions of the library. That the
// examples compile with them is a part of make compatibility.
func TestOldest(t *testing.T) {
	folder := t.TempDir()
	code, output := executeIn(t.Context(), t, folder, map[string]string{"from": "databaseuser", "controller-runtime": "v0.24", "skip-tidy": "false"})
	require.Zero(t, code, output)
	library, copied := versionsIn(t, root), versionsIn(t, filepath.Join(folder, "shop"))
	for _, module := range []string{controllerRuntime, "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"} {
		assert.Equal(t, library[module], copied[module], module)
	}
}

// TestVersions checks that a copy shares what is compiled with the repository: the generator of the copies requires nothing newer than the
// examples do. If it does, raise these versions in examples, bench, hack/k8s and hack/monitoring.
func TestVersions(t *testing.T) {
	generator, examples := versionsIn(t, filepath.Join(root, "hack", "generate")), versionsIn(t, filepath.Join(root, "examples"))
	for module, version := range examples {
		if newer, shared := generator[module]; shared {
			older := utilversion.MustParseSemantic(version).LessThan(utilversion.MustParseSemantic(newer))
			assert.False(t, older, "%s: the generator requires %s, and the examples %s", module, newer, version)
		}
	}
}

// versionsIn returns the versions of the modules that the go.mod of a folder names.
func versionsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	require.NoError(t, err)
	versions := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`).FindAllStringSubmatch(string(manifest), -1) {
		versions[line[1]] = line[2]
	}
	return versions
}

// TestBeyondLibrary compares what the examples require with go.mod of the library.
func TestBeyondLibrary(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(root, "examples", "go.mod"))
	require.NoError(t, err)
	library := versionsIn(t, root)
	for _, line := range requirement.FindAllSubmatch(manifest, -1) {
		module := string(line[1])
		_, shared := library[module]
		if len(line[2]) == 0 && module != libraryPath {
			assert.NotEqual(t, shared, slices.Contains(beyondLibrary, module), module)
		}
	}
	assert.Equal(t, older["v0.24"].controllerRuntime, library[controllerRuntime])
}

// assertRenamed asserts that the sources of a copy are formatted, and that none has a name of the repository's module, nor one of the
// example that is the kind for certain.
func assertRenamed(t *testing.T, folder, example string) {
	t.Helper()
	old := regexp.MustCompile(`opblocks/examples/(` + example + `|internal)|(?i)\b` + example + `(spec|status|list)\b|cache\.example\.com|huolala|meitu|handsomeguy|store\.example\.com`)
	for name, text := range contents(t, folder) {
		assert.NotRegexp(t, old, string(text), name)
		assert.NotRegexp(t, old, name)
	}
	assert.Empty(t, runCommand(t, folder, nil, "gofmt", "-d", "."))
}

// assertGenerated asserts that controller-gen generates what the modules of a workspace have. One call generates deep copies and CRDs for all of
// them, since it reads the types of Kubernetes, which they share. Each module has roles and webhooks of its own. The program itself is called:
// go tool would first look at all that the program is made of.
func assertGenerated(t *testing.T, workspace string, modules []string) {
	t.Helper()
	before, crds := contents(t, workspace), t.TempDir()
	program := strings.TrimSpace(runCommand(t, filepath.Join(workspace, modules[0]), nil, "go", "tool", "-n", "controller-gen"))
	types := []string{"object", "crd", "output:crd:dir=" + crds}
	for _, module := range modules {
		types = append(types, "paths=example.com/"+module+"/api/...")
		runCommand(t, filepath.Join(workspace, module), nil, program, "paths=example.com/"+module+"/...", // it would load ./... twice
			"rbac:roleName=manager-role", "output:rbac:dir=config/rbac", "webhook", "output:webhook:dir=config/webhook/base")
	}
	runCommand(t, workspace, []string{"GOWORK=" + filepath.Join(workspace, "go.work")}, program, types...)
	after, definitions := contents(t, workspace), contents(t, crds)
	for name, text := range after {
		assert.Empty(t, cmp.Diff(string(before[name]), string(text)), name)
		if crd := path.Base(name); strings.HasSuffix(path.Dir(name), "/config/crd/bases") {
			assert.Empty(t, cmp.Diff(string(text), string(definitions[crd])), name)
			delete(definitions, crd)
		}
	}
	assert.Len(t, after, len(before))
	assert.Empty(t, definitions, "they are not in the copies")
}

// contents returns the files of a folder by their paths.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = os.ReadFile(filepath.Join(folder, name))
		return err
	}))
	return files
}

// runCommand runs a program in a folder, outside of the workspace, and returns what it prints.
func runCommand(t *testing.T, folder string, environment []string, name string, arguments ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &out, &out
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "MAKEFLAGS="), environment...)
	require.NoError(t, cmd.Run(), "%s %s: %s", name, strings.Join(arguments, " "), &out)
	return out.String()
}
