package links

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var (
	target     = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	makeCall   = regexp.MustCompile(`\bmake ((?:[A-Z_]+=\S+ )*)([a-z-]+)`)
	pinnedUse  = regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	anyUse     = regexp.MustCompile(`(?m)^\s*(?:- )?uses: *(.*)$`)
	developers = []string{"AGENTS.md", "CONTRIBUTING.md", "docs/releasing.md", "docs/compatibility.md"} // their readers have the Makefile
)

// TestMakeTargets tests that each make target exists that a workflow or a page for developers names.
func TestMakeTargets(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	for _, page := range developers {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range checkTargets(root, page, strings.Join(code.FindAllString(string(text), -1), "\n")) {
			t.Error(fault)
		}
	}
	files, err := fs.Glob(root, ".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no workflows: %v", err)
	}
	for _, file := range files {
		for _, fault := range checkWorkflow(root, file) {
			t.Error(fault)
		}
	}
}

func checkTargets(root fs.FS, page, commands string) (faults []string) {
	makefile, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		return []string{err.Error()}
	}
	var targets []string
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, m[1])
	}
	for _, m := range makeCall.FindAllStringSubmatch(commands, -1) {
		if !slices.Contains(targets, m[2]) {
			faults = append(faults, fmt.Sprintf("%s: the Makefile has no target %s", page, m[2]))
		}
	}
	return faults
}

// checkWorkflow returns what is wrong with a workflow: make targets that do not exist, actions that are not pinned to a commit, and
// permissions that no job needs. The tool actionlint checks the rest.
func checkWorkflow(root fs.FS, file string) (faults []string) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return []string{err.Error()}
	}
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions any
			Steps       []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return []string{fmt.Sprintf("%s: %v", file, err)}
	}
	if diff := cmp.Diff(map[string]string{"contents": "read"}, workflow.Permissions); diff != "" {
		faults = append(faults, fmt.Sprintf("%s: the permissions of the workflow are not contents: read", file))
	}
	var commands []string
	for name, job := range workflow.Jobs {
		if job.Permissions != nil {
			faults = append(faults, fmt.Sprintf("%s: job %s has permissions of its own", file, name))
		}
		for _, step := range job.Steps {
			commands = append(commands, step.Run)
		}
	}
	slices.Sort(commands)
	for _, use := range anyUse.FindAllStringSubmatch(string(text), -1) {
		if !pinnedUse.MatchString(use[1]) {
			faults = append(faults, fmt.Sprintf("%s: %s: name the commit, and the version in a comment", file, use[1]))
		}
	}
	return append(faults, checkTargets(root, file, strings.Join(commands, "\n"))...)
}

// TestDependabot tests that dependabot checks every module of the repository.
func TestDependabot(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	text, err := fs.ReadFile(root, ".github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var updated []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			updated = append(updated, update.Directories...)
		}
	}
	var modules []string
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod"} {
		files, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasPrefix(file, "bin/") {
				modules = append(modules, path.Join("/", path.Dir(file)))
			}
		}
	}
	slices.Sort(updated)
	slices.Sort(modules)
	if diff := cmp.Diff(modules, updated); diff != "" {
		t.Errorf(".github/dependabot.yml: -modules +directories:\n%s", diff)
	}
}

func TestCheckWorkflowFindsFaults(t *testing.T) {
	const head = "permissions: {contents: read}\njobs:\n  test:\n    steps:\n"
	tests := map[string]struct {
		reason   string
		workflow string
		want     []string
	}{
		"Good":      {"pinned, with a target and a variable", head + "    - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1\n    - run: make GOPROXY=x test\n", nil},
		"NoTarget":  {"a target that was renamed", head + "    - run: make A=b tests\n", []string{"ci.yml: the Makefile has no target tests"}},
		"Tag":       {"a tag can be moved to another commit", head + "    - uses: actions/checkout@v7\n", []string{"ci.yml: actions/checkout@v7: name the commit, and the version in a comment"}},
		"Write":     {"the token of a job reaches every action that it runs", "permissions: {contents: write}\n", []string{"ci.yml: the permissions of the workflow are not contents: read"}},
		"JobRights": {"also those of one job", "permissions: {contents: read}\njobs:\n  test:\n    permissions: write-all\n", []string{"ci.yml: job test has permissions of its own"}},
		"NoYAML":    {"what GitHub would not read", "jobs: [", []string{"ci.yml: error converting YAML to JSON: yaml: line 1: did not find expected node content"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{"Makefile": {Data: []byte("test: build\n\tgo test\n")}, "ci.yml": {Data: []byte(tc.workflow)}}
			if diff := cmp.Diff(tc.want, checkWorkflow(root, "ci.yml")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
