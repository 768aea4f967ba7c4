package links

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// exported returns the exported symbols of the package in a folder, named like their anchors on pkg.go.dev: functions, types, constants and
// variables by their names, methods and fields as Type.Name. For a folder without a package it returns none.
func (s site) exported(folder string) map[string]bool {
	if symbols, ok := s.symbols[folder]; ok {
		return symbols
	}
	symbols := map[string]bool{}
	s.symbols[folder] = symbols
	files, err := fs.Glob(s.root, path.Join(folder, "*.go"))
	if err != nil {
		return symbols
	}
	for _, name := range files {
		source, err := fs.ReadFile(s.root, name)
		if err != nil || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		symbols["pkg-overview"] = true
		for _, decl := range file.Decls {
			add(symbols, decl)
		}
	}
	return symbols
}

func add(symbols map[string]bool, decl ast.Decl) {
	put := func(owner string, names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				symbols[strings.TrimPrefix(owner+"."+name.Name, ".")] = true
			}
		}
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		put(receiver(decl), decl.Name)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				put("", spec.Names...)
			case *ast.TypeSpec:
				put("", spec.Name)
				for _, member := range members(spec.Type) {
					put(spec.Name.Name, member.Names...)
				}
			}
		}
	}
}

func members(of ast.Expr) []*ast.Field {
	switch of := of.(type) {
	case *ast.StructType:
		return of.Fields.List
	case *ast.InterfaceType:
		return of.Methods.List
	}
	return nil
}

// receiver returns the name of the type that a method belongs to, without pointer and type parameters. For a function it returns "".
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	t := decl.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch index := t.(type) {
	case *ast.IndexExpr:
		t = index.X
	case *ast.IndexListExpr:
		t = index.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
