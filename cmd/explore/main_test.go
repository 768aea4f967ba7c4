package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/buildfolder"
)

var update = flag.Bool("update", false, "write the expected files")

// repository is the root of this repository.
const repository = "../.."

// project copies a project of testdata into a module of its own, with the dependencies of this repository, and returns its folder. If the
// tests run in a workspace, the module is in a workspace too, with the same versions. What is built of the module stays beside the folder.
func project(t *testing.T, name string) string {
	t.Helper()
	kept, release, err := buildfolder.Open("explore-" + name)
	require.NoError(t, err)
	t.Cleanup(release)
	dir := filepath.Join(kept, "module")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	content := strings.Replace(string(mod), "module "+libraryPath, "module example.com/"+name, 1)
	content += "\nrequire " + libraryPath + " v0.0.0\nreplace " + libraryPath + " => " + root + "\n"
	write(t, filepath.Join(dir, "go.mod"), content)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write(t, filepath.Join(dir, "go.sum"), string(sum))
	if work, err := exec.CommandContext(t.Context(), "go", "env", "GOWORK").Output(); err == nil && strings.HasSuffix(strings.TrimSpace(string(work)), "go.work") {
		folder := filepath.Dir(strings.TrimSpace(string(work)))
		write(t, filepath.Join(dir, "go.work"), fmt.Sprintf("go 1.26.0\n\nuse (\n\t.\n\t%[1]s\n\t%[1]s/bench\n\t%[1]s/examples\n)\n", folder))
		sums, err := os.ReadFile(filepath.Join(folder, "go.work.sum"))
		require.NoError(t, err)
		write(t, filepath.Join(dir, "go.work.sum"), string(sums))
	}
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
}

// command runs the command, and returns what it prints and its exit code.
func command(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return out.String(), errs.String(), code
}

// goCommand runs the go command in a module, and returns what it prints. The command may not use the network.
func goCommand(t *testing.T, dir string, args ...string) (output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=", "GOPROXY=off")
	if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
		cmd.Env = append(cmd.Env, "GOFLAGS=-mod=mod") // not allowed in a workspace
	}
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, string(printed))
	return string(printed)
}

// TestGenerated compares the generated test and the report with the files in testdata. It also compiles or runs the test, with nothing
// filled in.
func TestGenerated(t *testing.T) {
	tests := map[string]struct {
		reason string
		file   string
		run    string // the tests that are run; if it is empty, they are only compiled
	}{
		"shop":     {"kubebuilder's layout with a sample: a literal in main, of which one value comes from a flag", "internal/controller/explore_test.go", "TestExploreShop"},
		"accounts": {"a constructor, a function that sets up, a reconciler without a setup, one that cannot be reached; no sample", "controllers/explore_test.go", ""},
		"harbor": {"set-ups of one type on several values, constructors that take the manager, functions that are called twice or that reach others, arguments that cannot be filled, two mains that do the same",
			"internal/controller/explore_test.go", "TestExplore.*(ConfigMap|ServiceAccount)$"},
		"depot": {"three mains, two reconcilers of one type, two set-ups of a type, a function that adds controllers, one without a type, an index that stands apart", "internal/controller/explore_test.go", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := project(t, name)
			stdout, stderr, code := command(dir)
			require.Zero(t, code, stderr)
			content, err := os.ReadFile(filepath.Join(dir, test.file))
			require.NoError(t, err)
			report := regexp.MustCompile(`(?m)^  cd .*\n`).ReplaceAllString(stdout, "")
			compare(t, test.reason, filepath.Join("testdata", name+".report"), report)
			compare(t, test.reason, filepath.Join("testdata", name+".golden"), string(content))
			pkg := "./" + filepath.Dir(test.file)
			if test.run == "" {
				goCommand(t, dir, "list", "-test", "-export", pkg)
				return
			}
			program := filepath.Join(dir, "..", "explore.test") // if it is up to date, it is not linked again
			printed := goCommand(t, dir, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program, pkg)
			require.NotContains(t, printed, "no test files", "the program is of an earlier run")
			explore := exec.CommandContext(t.Context(), program, "-test.run="+test.run, "-test.v")
			explore.Dir = filepath.Join(dir, pkg)
			output, err := explore.CombinedOutput()
			require.NoError(t, err, string(output))
			assert.Regexp(t, `survived \d+ single faults`, string(output))
		})
	}
}

func compare(t *testing.T, reason, file, got string) {
	t.Helper()
	if *update {
		write(t, file, got)
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s (-want +got), write it with -update:\n%s", reason, file, diff)
	}
}

// TestOutput checks that the command prints the test, and that it overwrites a file only with -f.
func TestOutput(t *testing.T) {
	dir := project(t, "shop")
	stdout, stderr, code := command("-o", "-", dir)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "func TestExploreShop(")
	assert.Contains(t, stderr, "Left to fill in")

	file := filepath.Join(dir, "internal/controller/explore_test.go")
	write(t, file, "package controller_test\n")
	_, stderr, code = command(dir)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "internal/controller/explore_test.go exists: overwrite it with -f")
	_, stderr, code = command("-f", dir)
	assert.Zero(t, code, stderr)
}

// ofNoKind is a package with a reconciler whose kind cannot be found.
const ofNoKind = "package x\n\nimport (\n\"context\"\nctrl \"sigs.k8s.io/controller-runtime\"\n)\n\ntype R struct{}\n\n" +
	"func (R) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }\n"

// TestNotesTestMain checks that the report names a TestMain: it runs before the exploration, and may need a control plane.
func TestNotesTestMain(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x\n")
	write(t, filepath.Join(dir, "r.go"), ofNoKind)
	write(t, filepath.Join(dir, "suite_test.go"), "package x\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) { m.Run() }\n")
	stdout, stderr, code := command(dir)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "note: TestMain in suite_test.go runs before the test: ")
}

// TestOldest checks that the oldest versions in the command are the versions in go.mod.
func TestOldest(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "\t"+controllerRuntime+" "+oldestControllerRuntime+"\n")
	assert.Contains(t, string(manifest), "\tk8s.io/api "+oldestKubernetes+"\n")
}

// TestCommands checks that the printed commands raise the modules that are too old.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x\n\nrequire (\nk8s.io/component-base v0.35.3\nk8s.io/metrics v0.36.4\nsigs.k8s.io/controller-runtime v0.23.3\n)\n")
	write(t, filepath.Join(dir, "r.go"), ofNoKind)
	write(t, filepath.Join(dir, "vendor/modules.txt"), "")
	stdout, stderr, code := command(dir)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "note: go.mod has controller-runtime v0.23.3, and the library needs v0.24.1 or newer")
	assert.Contains(t, stdout, "  go get -t "+libraryPath+"/reconcile/reconciletest k8s.io/component-base@v0.36.0\n"+
		"  go mod vendor\n  go test -run TestExplore -v .\n")
}

func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		reason string
		files  map[string]string
		args   []string // {} is the module's folder
		code   int
		want   string
	}{
		"NoFolder":      {"a mistyped name", nil, []string{"{}/nowhere"}, 1, "nowhere is not a folder: name the folder of the reconcilers"},
		"NoModule":      {"not a Go module", nil, []string{"{}"}, 1, "no go.mod in"},
		"BrokenGoMod":   {"go mod edit says why", map[string]string{"go.mod": "modul x\n"}, []string{"{}"}, 1, "could not be read"},
		"NoGoFiles":     {"a folder of manifests", map[string]string{"go.mod": "module x\n", "a.yaml": ""}, []string{"{}"}, 1, "no Go files in"},
		"NoReconciler":  {"a folder of API types", map[string]string{"go.mod": "module x\n", "a.go": "package x\n"}, []string{"{}"}, 1, "no reconciler in"},
		"Syntax":        {"nothing else can be found", map[string]string{"go.mod": "module x\n", "a.go": "package\n"}, []string{"{}"}, 1, "cannot be parsed: correct them first"},
		"UnknownFlag":   {"usage errors have code 2", nil, []string{"-x"}, 2, "flag provided but not defined: -x; see explore -h"},
		"OutputNoTest":  {"go test would not find it", nil, []string{"-o", "explore.go", "."}, 2, "name a file that ends in _test.go"},
		"OutputFolder":  {"each package has its own file", nil, []string{"-o", "a/b_test.go", "."}, 2, "without a folder"},
		"NothingElse":   {"a reconciler without kinds, definitions and main", map[string]string{"go.mod": "module x\n", "r.go": ofNoKind}, []string{"{}"}, 0, ""},
		"BrokenSamples": {"what cannot be read is left out", map[string]string{"go.mod": "module x\n", "r.go": ofNoKind, "config/samples/a.yaml": "{{ a }}", "config/crd/bases/a.yaml": ":\n-"}, []string{"{}"}, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range test.files {
				write(t, filepath.Join(dir, file), content)
			}
			var args []string
			for _, arg := range test.args {
				args = append(args, strings.ReplaceAll(arg, "{}", dir))
			}
			_, stderr, code := command(args...)
			assert.Equal(t, test.code, code, "%s: %s", test.reason, stderr)
			assert.Contains(t, stderr, test.want, test.reason)
		})
	}
}

func TestHelp(t *testing.T) {
	stdout, _, code := command("-h")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "overwrite the file if it exists")
}
