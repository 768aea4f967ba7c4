// Package typecheck checks the types of the packages of a module or a workspace, as the compiler does. It generates no code. Imports from
// other modules are read from the files that the go command has compiled, once for all packages. Tests that look at code use it.
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

// Options say which packages are checked, and how.
type Options struct {
	Dir      string   // the folder in which the go command runs
	Env      []string // variables that are added to the environment of the go command
	Patterns []string // the packages, such as "./..."
	Tests    bool     // checks the packages with their test files too
	Uses     bool     // sets Package.Info
}

// Package is a package after it was checked. If it has tests, and Options.Tests is set, it occurs a second time, with its test files.
type Package struct {
	ImportPath string // with test files, as `go list` prints it: "example.com/shop [example.com/shop.test]"
	Files      []*ast.File
	Types      *types.Package
	Info       *types.Info // set with Options.Uses: what the identifiers refer to
	Err        error       // all errors that the compiler would report
}

// Load returns the packages, sorted by path. An error means that the packages could not be listed. The errors in a package are in its Err.
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
		if p.Module != nil && p.Module.Main && !strings.HasSuffix(p.ImportPath, ".test") { // the main package of a test program is generated, so it is not checked
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

// list returns the output of `go list`.
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

// exports returns a function that opens the compiled file of a package. Each of the lines has an import path and the name of a file.
func exports(lines string) importer.Lookup {
	files := map[string]string{}
	for line := range strings.Lines(lines) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// sources has the packages that are checked from their source files.
type sources struct {
	files    *token.FileSet
	packages map[string]*source
	exported types.Importer // imports packages from their compiled files
	uses     bool
}

// source is a package as `go list -json` describes it, and the result of its check.
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
		_, _ = s.check(path) // the source itself keeps the error
	}
	for _, p := range s.packages {
		all = append(all, &p.checked)
	}
	slices.SortFunc(all, func(a, b *Package) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all
}

// check checks a package, unless it was checked before, and returns it.
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

// mapped returns the path of the package that an import in a source file refers to. In a test, this may be the package with its test files.
func (p *source) mapped(path string) string {
	if mapped, ok := p.ImportMap[path]; ok {
		return mapped
	}
	return path
}

type importing func(path string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }
