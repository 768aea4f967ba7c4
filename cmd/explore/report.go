package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestControllerRuntime and oldestKubernetes are the oldest versions of controller-runtime and of the modules of Kubernetes that the
// library works with. go get raises older versions to these. A test compares them with go.mod.
const (
	oldestControllerRuntime = "v0.24.1"
	oldestKubernetes        = "v0.36.0"
)

// besides are modules of Kubernetes that compile only with the same minor version of k8s.io/api. The library does not require them, so go
// get does not raise them by itself.
var besides = []string{"k8s.io/cli-runtime", "k8s.io/component-base", "k8s.io/component-helpers", "k8s.io/kubectl", "k8s.io/metrics"}

// report prints what was found, what is left to fill in, and which commands come next.
func (g *generator) report(w io.Writer, output string, content []byte) {
	file := "standard output"
	if output != "-" {
		file = g.m.relative(filepath.Join(g.p.dir, output))
	}
	fmt.Fprintf(w, "%s: a test of package %s\n", file, g.p.path)
	for _, r := range g.p.reconcilers {
		fmt.Fprintf(w, "  reconciler %s, %s\n", r.title(), g.m.position(r.at.Pos()))
	}
	for _, line := range g.summary {
		fmt.Fprintf(w, "  %s\n", line)
	}
	for _, line := range g.warnings() {
		fmt.Fprintf(w, "  note: %s\n", line)
	}
	fmt.Fprintln(w, "\nLeft to fill in; the test compiles without it:")
	for i, line := range strings.Split(string(content), "\n") {
		if _, what, ok := strings.Cut(line, "// FILL IN "); ok {
			fmt.Fprintf(w, "  %s:%d: %s\n", file, i+1, what)
		}
	}
	fmt.Fprintln(w, "\nNext:")
	for _, command := range g.commands() {
		fmt.Fprintf(w, "  %s\n", command)
	}
	fmt.Fprintln(w)
}

// warnings returns lines about what the test cannot do without the user.
func (g *generator) warnings() (lines []string) {
	for _, name := range g.missing {
		lines = append(lines, name+" has no custom resource definition in the module: write it with make manifests and call the command again, "+
			"or add the file to CRDs and write a test")
	}
	for _, kind := range g.p.kinds() {
		isForeign := !strings.HasPrefix(kind.path, "k8s.io/api/") && !slices.Contains(g.missing, kind.name)
		if isForeign && strings.Contains(kind.path, ".") && !g.found.isDefined(kind) {
			lines = append(lines, fmt.Sprintf("%s of %s is watched, and the module has no custom resource definition of it: add its file to CRDs", kind.name, kind.path))
		}
	}
	if g.m.hasWebhooks() {
		lines = append(lines, "no webhook is called: name the configurations in Scenario.Webhooks, or write into the object what their defaults would set")
	}
	if file := testMainIn(g.p.dir); file != "" {
		lines = append(lines, "TestMain in "+g.m.relative(file)+" runs before the test: if it starts a control plane, move the test into another folder of the module")
	}
	for _, problem := range g.m.problems {
		lines = append(lines, "left out, since it cannot be parsed: "+problem)
	}
	if own := g.m.required[controllerRuntime]; isOlder(own, oldestControllerRuntime) {
		lines = append(lines, fmt.Sprintf("go.mod has controller-runtime %s, and the library needs %s or newer: go get raises it, and code that uses what was removed has to follow",
			own, oldestControllerRuntime))
	}
	return lines
}

// isOlder reports whether the version own is older than other. An empty version is not older.
func isOlder(own, other string) bool {
	v, err := version.ParseSemantic(own)
	return err == nil && v.LessThan(version.MustParseSemantic(other))
}

// hasWebhooks reports whether the module registers webhooks.
func (m *module) hasWebhooks() bool {
	return slices.ContainsFunc(m.sources(), func(p *pkg) bool {
		return slices.ContainsFunc(p.files, func(s *source) bool {
			return mentions(s.File, "NewWebhookManagedBy") || mentions(s.File, "WebhookManagedBy")
		})
	})
}

// testMainIn returns the test file of the folder with a TestMain. It returns "" if there is none.
func testMainIn(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // cannot fail: the pattern is valid
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), "\nfunc TestMain(") {
			return file
		}
	}
	return ""
}

// commands returns the commands that come next.
func (g *generator) commands() (commands []string) {
	if rel, err := filepath.Rel(".", g.m.root); err == nil && rel != "." {
		commands = append(commands, "cd "+rel)
	}
	if g.m.required[libraryPath] == "" && g.m.path != libraryPath {
		get := []string{"go get -t " + libraryPath + "/reconcile/reconciletest"}
		for _, module := range besides {
			if isOlder(g.m.required[module], oldestKubernetes) {
				get = append(get, module+"@"+oldestKubernetes)
			}
		}
		commands = append(commands, strings.Join(get, " "))
	}
	if g.m.vendored {
		commands = append(commands, "go mod vendor")
	}
	run := "'^TestExplore'"
	if len(g.tests) == 1 {
		run = g.tests[0]
	}
	folder := "./" + g.m.relative(g.p.dir)
	if g.p.dir == g.m.root {
		folder = "."
	}
	return append(commands, "go test -run "+run+" -v "+folder)
}
