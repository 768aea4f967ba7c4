package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// module is the Go module of the operator.
type module struct {
	root      string // an absolute path
	path      string // such as example.com/shop
	required  map[string]string
	replaced  map[string]string // local folders that replace other modules, by the module path
	vendored  bool
	positions *token.FileSet
	packages  map[string]*pkg // the packages by folder; nil for a folder without Go files
	problems  []string        // files that could not be parsed
	all       []*pkg          // see sources

	byPath map[string]*pkg // see packageOf
	graph  *graph
	within []place // see withinSetups
}

// openModule reads the go.mod of the module to which a folder belongs.
func openModule(folder string) (*module, error) {
	folder = strings.TrimSuffix(folder, "...")
	dir, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: name the folder of the reconcilers, such as ./internal/controller", folder)
	}
	root := dir
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("no go.mod in %s or above: name a folder of a Go module, or run go mod init", folder)
		}
		root = filepath.Dir(root)
	}
	m := &module{root: root, positions: token.NewFileSet(), packages: map[string]*pkg{}, required: map[string]string{}, replaced: map[string]string{},
		byPath: map[string]*pkg{}}
	m.graph = &graph{m: m, referred: map[*ast.FuncDecl][]place{}}
	_, err = os.Stat(filepath.Join(root, "vendor", "modules.txt"))
	m.vendored = err == nil
	return m, m.readGoMod()
}

func (m *module) readGoMod() error {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = m.root
	output, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%s", strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("go.mod in %s could not be read: %w", m.root, err)
	}
	var mod struct {
		Module  struct{ Path string }
		Require []struct{ Path, Version string }
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(output, &mod); err != nil {
		return err
	}
	m.path = mod.Module.Path
	for _, r := range mod.Require {
		m.required[r.Path] = r.Version
	}
	for _, r := range mod.Replace {
		if strings.HasPrefix(r.New.Path, ".") {
			m.replaced[r.Old.Path] = filepath.Join(m.root, r.New.Path)
		}
	}
	return nil
}

// folderOf returns the folder of a package in this or another module. It returns "" if the folder is not known.
func (m *module) folderOf(importPath string) string {
	if dir := m.folderIn(importPath); dir != "" {
		return dir
	}
	for old, dir := range m.replaced {
		if rest, ok := strings.CutPrefix(importPath+"/", old+"/"); ok {
			return filepath.Join(dir, rest)
		}
	}
	cmd := exec.Command("go", "list", "-e", "-find", "-f", "{{.Dir}}", importPath)
	cmd.Dir = m.root
	output, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}

// folderIn returns the folder of a package of this module. It returns "" for any other package.
func (m *module) folderIn(importPath string) string {
	if rest, ok := strings.CutPrefix(importPath+"/", m.path+"/"); ok {
		if dir := filepath.Join(m.root, rest); isFolder(dir) {
			return dir
		}
	}
	return ""
}

// packageOf returns a package of this module. It returns nil for any other package.
func (m *module) packageOf(importPath string) *pkg {
	p, known := m.byPath[importPath]
	if !known {
		p = m.parse(m.folderIn(importPath))
		m.byPath[importPath] = p
	}
	return p
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// importPath returns the import path of a folder of the module.
func (m *module) importPath(dir string) string {
	return path.Join(m.path, filepath.ToSlash(m.relative(dir)))
}

// relative returns a path relative to the module's root, for output.
func (m *module) relative(file string) string {
	if rel, err := filepath.Rel(m.root, file); err == nil {
		return filepath.ToSlash(rel)
	}
	return file
}

// position returns file:line.
func (m *module) position(pos token.Pos) string {
	p := m.positions.Position(pos)
	return fmt.Sprintf("%s:%d", m.relative(p.Filename), p.Line)
}

// walk calls visit for dir, and for each folder below it that belongs to the module.
func (m *module) walk(dir string, visit func(dir string)) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := entry.Name()
		skipped := []string{"vendor", "testdata", "node_modules", "bin"}
		if file != dir && (slices.Contains(skipped, name) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return filepath.SkipDir
		}
		visit(file)
		return nil
	})
}

// withReconcilers returns the packages with reconcilers in the folders and below.
func (m *module) withReconcilers(folders []string) ([]*pkg, error) {
	var found []*pkg
	goFiles := false
	for _, folder := range folders {
		dir, err := filepath.Abs(strings.TrimSuffix(folder, "..."))
		if err != nil {
			return nil, err
		}
		if !isFolder(dir) {
			return nil, fmt.Errorf("%s is not a folder: name the folder of the reconcilers, such as ./internal/controller", folder)
		}
		if rel := m.relative(dir); strings.HasPrefix(rel, "..") {
			return nil, fmt.Errorf("%s is not in the module %s: call the command once for each module", folder, m.path)
		}
		err = m.walk(dir, func(dir string) {
			p := m.parse(dir)
			if p == nil {
				return
			}
			goFiles = true
			if p.reconcilers = m.findReconcilers(p); len(p.reconcilers) > 0 && !slices.Contains(found, p) {
				found = append(found, p)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	where := strings.Join(folders, ", ")
	switch {
	case len(found) > 0:
		return found, nil
	case len(m.problems) > 0:
		return nil, fmt.Errorf("%s has Go files that cannot be parsed: correct them first:\n  %s", where, strings.Join(m.problems, "\n  "))
	case !goFiles:
		return nil, fmt.Errorf("no Go files in %s or below: name the folder of the reconcilers, such as ./internal/controller", where)
	default:
		return nil, fmt.Errorf("no reconciler in %s or below: there is no method Reconcile(context.Context, ctrl.Request) (ctrl.Result, error), "+
			"and no method or exported function that builds a controller for a manager; name the folder that has it", where)
	}
}

// sources returns all packages of the module, main packages first.
func (m *module) sources() []*pkg {
	if m.all == nil {
		_ = m.walk(m.root, func(dir string) { // files that cannot be read have no code to follow
			if p := m.parse(dir); p != nil {
				m.all = append(m.all, p)
			}
		})
		slices.SortStableFunc(m.all, func(a, b *pkg) int {
			switch {
			case a.name == b.name || a.name != "main" && b.name != "main":
				return strings.Compare(a.dir, b.dir)
			case a.name == "main":
				return -1
			default:
				return 1
			}
		})
	}
	return m.all
}
