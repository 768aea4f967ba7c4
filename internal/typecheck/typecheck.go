// Package typecheck checks the packages of a module, or of the modules of a workspace, by the rules of the compiler, and generates no code.
// Imports from other modules are read as the go command has compiled them, once for all packages. Tests that look at code use it.
package typecheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what is checked.
type Options struct {
	Dir      string   // where the go command runs
	Env      []string // added to the environment of the go command
	Patterns []string // name packages, such as "./..."
	Tests    bool     // with the tests of the packages
	Uses     bool     // with Package.Info
}

// Package is a checked package. If it has tests, it occurs a second time, with them.
type Package struct {
	ImportPath string // with tests, as `go list` prints it: "example.com/shop [example.com/shop.test]"
	Files      []*ast.File
	Types      *types.Package
	Info       *types.Info // with Options.Uses: what the identifiers mean
	Err        error       // has all that the compiler would say
}

// Load returns the packages in the order of their paths. An error means that they could not be listed. The errors of a package are in its
// Err.
func Load(ctx context.Context, o Options) ([]*Package, *token.FileSet, error) {
	arguments := []string{"-deps", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,Module"}
	if o.Tests {
		arguments = append(arguments, "-test")
	}
	text, err := list(ctx, o, append(arguments, o.Patterns...)...)
	if err != nil {
		return nil, nil, err
	}
	s := &sources{files: token.NewFileSet(), packages: map[string]*source{}, uses: o.Uses}
	var imports []string
	for listed := json.NewDecoder(bytes.NewReader(text)); listed.More(); {
		p := &source{}
		if err := listed.Decode(p); err != nil {
			return nil, nil, fmt.Errorf("read the list of packages: %w", err)
		}
		if p.Module != nil && p.Module.Main && !strings.HasSuffix(p.ImportPath, ".test") { // the program of a test is generated
			s.packages[p.ImportPath] = p
			imports = append(imports, p.Imports...)
		}
	}
	if len(s.packages) == 0 {
		return nil, nil, fmt.Errorf("no packages in %s for %q", o.Dir, o.Patterns)
	}
	slices.Sort(imports)
	imports = slices.DeleteFunc(slices.Compact(imports), func(path string) bool { return s.packages[path] != nil })
	compiled, err := list(ctx, o, append([]string{"-export", "-f={{.ImportPath}} {{.Export}}"}, imports...)...)
	if err != nil {
		return nil, nil, err
	}
	s.exported = importer.ForCompiler(s.files, "gc", exports(string(compiled)))
	return s.checkAll(), s.files, nil
}

// list returns what `go list` prints.
func list(ctx context.Context, o Options, arguments ...string) ([]byte, error) {
	var failed bytes.Buffer
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, arguments...)...)
	command.Dir, command.Env, command.Stderr = o.Dir, append(os.Environ(), o.Env...), &failed
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages in %s: %w: %s", o.Dir, err, bytes.TrimSpace(failed.Bytes()))
	}
	return output, nil
}

// exports returns a function that opens the compiled file of a package. Each of the lines has an import path and a
// file.
func exports(lines string) importer.Lookup {
	files := map[string]string{}
	for line := range strings.Lines(lines) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// sources are the packages that are checked from their source.
type sources struct {
	files    *token.FileSet
	packages map[string]*source
	exported types.Importer // imports what is compiled
	uses     bool
}

// source is a package as `go list -json` describes it, and after it was checked.
type source struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	ImportMap  map[string]string
	Module     *module

	done    bool
	checked Package
}

type module struct {
	Main      bool
	GoVersion string
}

func (s *sources) checkAll() (all []*Package) {
	for path := range s.packages {
		_, _ = s.check(path) // the package has the error
	}
	for _, p := range s.packages {
		all = append(all, &p.checked)
	}
	slices.SortFunc(all, func(a, b *Package) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all
}

// check returns a package after it has been checked.
func (s *sources) check(path string) (*types.Package, error) {
	p := s.packages[path]
	if p == nil {
		return s.exported.Import(path)
	}
	if p.done {
		return p.checked.Types, p.checked.Err
	}
	p.done, p.checked.ImportPath = true, path
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(s.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			p.checked.Err = err
			return nil, err
		}
		p.checked.Files = append(p.checked.Files, file)
	}
	var all []error
	config := types.Config{
		GoVersion: "go" + p.Module.GoVersion,
		Importer:  importing(func(path string) (*types.Package, error) { return s.check(p.mapped(path)) }),
		Error:     func(err error) { all = append(all, err) },
	}
	if s.uses {
		p.checked.Info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	}
	p.checked.Types, _ = config.Check(path, s.files, p.checked.Files, p.checked.Info)
	p.checked.Err = errors.Join(all...)
	return p.checked.Types, p.checked.Err
}

// mapped returns the package that a path in a source means: in a test, it may be the package with its test files.
func (p *source) mapped(path string) string {
	if mapped, ok := p.ImportMap[path]; ok {
		return mapped
	}
	return path
}

type importing func(path string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }
