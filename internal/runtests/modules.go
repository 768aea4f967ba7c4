package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// libraryPath is the path of the library's module.
const libraryPath = "github.com/opblocks/opblocks"

// module is a folder in which the go command finds packages with tests.
type module struct {
	folder   string // the root folder stands for all modules of the workspace
	outside  bool   // the module does not belong to the workspace
	packages []*testedPackage
}

// testedPackage is a package that has tests. Its fields are named as in the output of `go list -json`.
type testedPackage struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// modulesIn returns the modules in the checkout that have tests: first one entry for all modules of the workspace, then each other module.
// flags are flags of the compiler, such as -race.
func modulesIn(root string, flags ...string) ([]*module, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	folders, err := foldersOfTests(root)
	if err != nil {
		return nil, err
	}
	workspace := &module{folder: root}
	joined, err := workspace.command("list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w: %s", err, outputOf(err))
	}
	all, patterns := []*module{workspace}, []string{}
	for _, folder := range folders {
		if slices.Contains(strings.Fields(string(joined)), folder) {
			patterns = append(patterns, filepath.Join(folder, "..."))
			continue
		}
		m := &module{folder: folder, outside: true}
		if err := m.list(flags, "./..."); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if err := workspace.list(flags, patterns...); err != nil {
		return nil, err
	}
	workspace.beginEarly(libraryPath+"/examples/new", libraryPath+"/examples/")
	return all, nil
}

// beginEarly moves a package before the first package whose path has the prefix, so that the tests that take longest do not run alone at the
// end. If the module does not have both, beginEarly does nothing.
func (m *module) beginEarly(path, prefix string) {
	from := slices.IndexFunc(m.packages, func(p *testedPackage) bool { return p.ImportPath == path })
	to := slices.IndexFunc(m.packages, func(p *testedPackage) bool { return strings.HasPrefix(p.ImportPath, prefix) })
	if to >= 0 && from > to {
		moved := m.packages[from]
		m.packages = slices.Insert(slices.Delete(m.packages, from, from+1), to, moved)
	}
}

// foldersOfTests returns, sorted, the folders of the modules that contain a test file.
func foldersOfTests(root string) (folders []string, err error) {
	err = eachTestFile(root, func(file string) {
		folder := filepath.Dir(file)
		for ; folder != root; folder = filepath.Dir(folder) {
			if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
				break
			}
		}
		folders = append(folders, folder)
	})
	slices.Sort(folders)
	return slices.Compact(folders), err
}

// eachTestFile calls a function for each test file in the checkout, except files whose path the go command ignores.
func eachTestFile(root string, do func(file string)) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return fs.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(name, "_test.go") {
			do(path)
		}
		return nil
	})
}

// list finds the packages that match the patterns and have tests.
func (m *module) list(flags []string, patterns ...string) error {
	arguments := slices.Concat([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles"}, flags, patterns)
	listed, err := m.command(arguments...).Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w: %s", m.folder, err, outputOf(err))
	}
	for decoder := json.NewDecoder(strings.NewReader(string(listed))); ; {
		p := &testedPackage{}
		switch err := decoder.Decode(p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("go list in %s: %w", m.folder, err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			m.packages = append(m.packages, p)
		}
	}
}

// outputOf returns what a failed command has written to stderr.
func outputOf(err error) string {
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		return string(failed.Stderr)
	}
	return ""
}

// command returns a go command with these arguments, which runs in the module.
func (m *module) command(args ...string) *exec.Cmd {
	command := exec.Command("go", args...)
	command.Dir = m.folder
	command.Env = os.Environ()
	if m.outside {
		command.Env = append(command.Env, "GOWORK=off")
	}
	return command
}

// thatShareMemory returns the modules with only those packages whose own code shares memory between goroutines.
func thatShareMemory(modules []*module) (sharing []*module) {
	for _, m := range modules {
		packages := slices.DeleteFunc(slices.Clone(m.packages), func(p *testedPackage) bool { return !p.sharesMemory() })
		if len(packages) > 0 {
			sharing = append(sharing, &module{m.folder, m.outside, packages})
		}
	}
	return sharing
}

// sharesMemory reports whether the package's own code starts goroutines or uses package sync. If a file cannot be parsed, it returns true,
// so that the compiler reports the mistake.
func (p *testedPackage) sharesMemory() bool {
	return slices.ContainsFunc(p.GoFiles, func(name string) bool {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return true
		}
		shares := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
			return i.Path.Value == `"sync"` || i.Path.Value == `"sync/atomic"`
		})
		ast.Inspect(file, func(n ast.Node) bool {
			_, starts := n.(*ast.GoStmt)
			shares = shares || starts
			return !shares
		})
		return shares
	})
}

// namesOf returns the names of the packages of the modules, one on each line.
func namesOf(modules []*module) string {
	text := &strings.Builder{}
	for _, m := range modules {
		for _, p := range m.packages {
			fmt.Fprintf(text, "  %s\n", p.name())
		}
	}
	return text.String()
}

// name returns the path of the package in the repository.
func (p *testedPackage) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, libraryPath), "/")
}
