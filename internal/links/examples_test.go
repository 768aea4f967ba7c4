package links

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// public are the folders of the packages for users.
var public = []string{
	"conditions", "finalizers", "ownedresources", "ownedresources/overlay", "ownedresources/workload", "predicates", "reconcile",
	"reconcile/reconciletest", "reconcile/reconciletest/controlplane", "reconcile/reconciletest/controlplane/supervisor", "reconcile/reconciletest/fakeapi", "reconcile/scheduledjobs", "reconcile/secrets", "reconcile/startqueue", "reconcile/storageversion", "schedule",
}

// TestExamples checks that each exported function is called in an example, which go test runs and pkg.go.dev shows.
func TestExamples(t *testing.T) {
	for _, folder := range public {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no package in %s: %v", folder, err)
		}
		var sources []*ast.File
		var names []string
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			sources, names = append(sources, parsed), append(names, filepath.Base(file))
		}
		for _, name := range withoutExample(sources, names) {
			t.Errorf("no example uses %s.%s: add one to an example_test.go", folder, name)
		}
	}
}

// withoutExample returns the exported functions of a package that its example files do not name.
func withoutExample(sources []*ast.File, names []string) (missing []string) {
	shown := map[string]bool{}
	for i, source := range sources {
		if !strings.HasPrefix(names[i], "example") {
			continue
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				shown[selector.Sel.Name] = true
			}
			return true
		})
	}
	for i, source := range sources {
		if strings.HasSuffix(names[i], "_test.go") {
			continue
		}
		for _, decl := range source.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.IsExported() && !shown[f.Name.Name] {
				missing = append(missing, f.Name.Name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

func TestWithoutExample(t *testing.T) {
	parse := func(source string) *ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	sources := []*ast.File{
		parse("package a\nfunc Shown() {}\nfunc Hidden() {}\nfunc internal() {}\ntype T int\nfunc (T) Method() {}"),
		parse("package a_test\nfunc ExampleShown() { a.Shown() }"),
		parse("package a_test\nfunc TestHidden() { a.Hidden() }"),
	}
	if diff := cmp.Diff([]string{"Hidden"}, withoutExample(sources, []string{"a.go", "example_test.go", "a_test.go"})); diff != "" {
		t.Error(diff)
	}
}
