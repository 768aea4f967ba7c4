//go:build !race

// Programs are run here, which the race detector does not see.

package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sources are the packages of the modules in a workspace, with their tests. They are checked by the rules of the compiler, and no code is
// generated. What they import from other modules is compiled, once for all tests of the repository.
type sources struct {
	files    *token.FileSet
	packages map[string]*sourcePackage
	exported types.Importer // imports what is compiled
}

// sourcePackage has the names that `go list -json` uses.
type sourcePackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	ImportMap  map[string]string
	Module     *sourceModule

	checked *types.Package
	wrong   error
}

type sourceModule struct {
	Main      bool
	GoVersion string
}

// assertCompiles asserts that the modules of a workspace compile, with their tests.
func assertCompiles(t *testing.T, workspace string, modules []string) {
	t.Helper()
	list := func(arguments ...string) string {
		t.Helper()
		return runCommand(t, workspace, []string{"GOWORK="}, "go", append([]string{"list"}, arguments...)...)
	}
	patterns := []string{"-deps", "-test", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,Module"}
	for _, module := range modules {
		patterns = append(patterns, "./"+module+"/...")
	}
	s := &sources{files: token.NewFileSet(), packages: map[string]*sourcePackage{}}
	listed := json.NewDecoder(strings.NewReader(list(patterns...)))
	var imports []string
	for listed.More() {
		p := &sourcePackage{}
		require.NoError(t, listed.Decode(p))
		if p.Module != nil && p.Module.Main && !strings.HasSuffix(p.ImportPath, ".test") { // the program of a test is generated
			s.packages[p.ImportPath] = p
			imports = append(imports, p.Imports...)
		}
	}
	require.NotEmpty(t, s.packages)
	slices.Sort(imports)
	imports = slices.DeleteFunc(slices.Compact(imports), func(path string) bool { return s.packages[path] != nil })
	exports := map[string]string{}
	for line := range strings.Lines(list(append([]string{"-export", "-f={{.ImportPath}} {{.Export}}"}, imports...)...)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	s.exported = importer.ForCompiler(s.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for path := range s.packages {
		_, err := s.check(path)
		assert.NoError(t, err, path)
	}
}

// check returns a package after it has been checked. The error has all that the compiler would say.
func (s *sources) check(path string) (*types.Package, error) {
	p := s.packages[path]
	if p == nil {
		return s.exported.Import(path)
	}
	if p.checked != nil || p.wrong != nil {
		return p.checked, p.wrong
	}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(s.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			p.wrong = err
			return nil, err
		}
		parsed = append(parsed, file)
	}
	var all []error
	config := types.Config{
		GoVersion: "go" + p.Module.GoVersion,
		Importer:  importing(func(path string) (*types.Package, error) { return s.check(p.mapped(path)) }),
		Error:     func(err error) { all = append(all, err) },
	}
	p.checked, _ = config.Check(path, s.files, parsed, nil)
	p.wrong = errors.Join(all...)
	return p.checked, p.wrong
}

// mapped returns the package that a path in a source means: in a test, it may be the package with its test files.
func (p *sourcePackage) mapped(path string) string {
	if mapped, ok := p.ImportMap[path]; ok {
		return mapped
	}
	return path
}

type importing func(path string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }

// TestCheck checks packages that compile, one that does not, and one that lacks what only a test file declares.
func TestCheck(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"shop.go": "package shop\n\nfunc open() bool { return true }\n", "export_test.go": "package shop\n\nvar Open = open\n",
		"shop_test.go": "package shop_test\n\nimport \"example.com/shop\"\n\nvar _ bool = shop.Open()\n", "wrong.go": "package wrong\n\nvar _ = shop\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	packages := map[string]*sourcePackage{
		"example.com/shop":               {GoFiles: []string{"shop.go"}},
		"example.com/shop [shop.test]":   {GoFiles: []string{"shop.go", "export_test.go"}},
		"shop_test [shop.test]":          {GoFiles: []string{"shop_test.go"}, ImportMap: map[string]string{"example.com/shop": "example.com/shop [shop.test]"}},
		"example.com/shop/withoutItsMap": {GoFiles: []string{"shop_test.go"}},
		"example.com/shop/wrong":         {GoFiles: []string{"wrong.go"}},
	}
	s := &sources{files: token.NewFileSet(), packages: packages}
	found := map[string]string{}
	for _, p := range packages {
		p.Dir, p.Module = folder, &sourceModule{GoVersion: "1.26.0"}
	}
	for path := range packages {
		if _, err := s.check(path); err != nil {
			_, found[path], _ = strings.Cut(err.Error(), ".go:")
		}
	}
	assert.Equal(t, map[string]string{"example.com/shop/withoutItsMap": "5:19: undefined: shop.Open", "example.com/shop/wrong": "3:9: undefined: shop"}, found)
}
