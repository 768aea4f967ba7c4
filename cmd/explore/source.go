package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// pkg is a parsed package, without its test files.
type pkg struct {
	dir, path, name string
	files           []*source
	reconcilers     []*reconciler
	declared        map[declaration]place // see functionOf
}

// source is a parsed file.
type source struct {
	*ast.File
	pkg     *pkg
	content []byte
}

// typeRef is the package path and the name of a type, or of a function.
type typeRef struct{ path, name string }

// parse returns the package in a folder. It returns nil if the folder has no Go files that are built on this machine.
func (m *module) parse(dir string) *pkg {
	if p, ok := m.packages[dir]; ok {
		return p
	}
	m.packages[dir] = nil
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	p := &pkg{dir: dir, path: m.importPath(dir)}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if matches, err := build.Default.MatchFile(dir, name); err != nil || !matches {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			m.problems = append(m.problems, err.Error())
			continue
		}
		file, err := parser.ParseFile(m.positions, filepath.Join(dir, name), content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			m.problems = append(m.problems, err.Error())
			continue
		}
		p.name = file.Name.Name
		p.files = append(p.files, &source{File: file, pkg: p, content: content})
	}
	if len(p.files) == 0 {
		return nil
	}
	m.packages[dir] = p
	return p
}

// imported returns the path of the package that the file imports with this name. It returns "" if there is none.
func (s *source) imported(ident string) string {
	for _, spec := range s.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if spec.Name != nil && spec.Name.Name == ident || spec.Name == nil && isNamed(imported, ident) {
			return imported
		}
	}
	return ""
}

// isNamed reports whether a package with this path may have the name ident.
func isNamed(imported, ident string) bool {
	base := path.Base(imported)
	if base == ident || strings.TrimSuffix(strings.TrimPrefix(base, "go-"), "-go") == ident {
		return true
	}
	if name, version, ok := strings.Cut(base, ".v"); ok && version != "" && name == ident {
		return true
	}
	return isVersion(base) && path.Base(path.Dir(imported)) == ident || strings.ReplaceAll(base, "-", "") == ident || strings.ReplaceAll(base, "-", "_") == ident
}

// isVersion reports whether a name is v1, v2, …
func isVersion(name string) bool {
	_, err := strconv.Atoi(strings.TrimPrefix(name, "v"))
	return strings.HasPrefix(name, "v") && err == nil
}

// typeOf returns the named type of a type expression or of a composite literal. Pointers are left out.
func (s *source) typeOf(e ast.Expr) typeRef {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.typeOf(e.X)
	case *ast.ParenExpr:
		return s.typeOf(e.X)
	case *ast.UnaryExpr:
		return s.typeOf(e.X)
	case *ast.CompositeLit:
		return s.typeOf(e.Type)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "new" && len(e.Args) == 1 {
			return s.typeOf(e.Args[0])
		}
	case *ast.Ident:
		return typeRef{s.pkg.path, e.Name}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return typeRef{s.imported(x.Name), e.Sel.Name}
		}
	}
	return typeRef{}
}

// text returns the source code of a node.
func (m *module) text(s *source, n ast.Node) string {
	return string(s.content[m.positions.Position(n.Pos()).Offset:m.positions.Position(n.End()).Offset])
}

// structOf returns the struct type of the package with this name, and its file.
func (p *pkg) structOf(name string) (*ast.StructType, *source) {
	t, s := p.typeNamed(name)
	if st, ok := t.(*ast.StructType); ok {
		return st, s
	}
	return nil, nil
}

// typeNamed returns the definition of the package's type with this name, and its file.
func (p *pkg) typeNamed(name string) (ast.Expr, *source) {
	for _, s := range p.files {
		for _, decl := range s.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == name {
					return t.Type, s
				}
			}
		}
	}
	return nil, nil
}
