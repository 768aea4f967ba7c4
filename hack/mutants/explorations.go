package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// explorationsIn returns the tests of a package that call reconciletest.Explore, directly or by helper functions.
func explorationsIn(folder string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	calls := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil && fn.Recv == nil {
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok {
						calls[fn.Name.Name] = append(calls[fn.Name.Name], called(call.Fun))
					}
					return true
				})
			}
		}
	}
	for name := range calls {
		if strings.HasPrefix(name, "Test") && explores(name, calls, map[string]bool{}) {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) == 0 {
		return nil, fmt.Errorf("%s has no exploration", folder)
	}
	return names, nil
}

func called(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok && x.Name == "reconciletest" {
			return "reconciletest." + fun.Sel.Name
		}
	}
	return ""
}

// explores reports whether a function calls reconciletest.Explore, directly or indirectly. seen are the functions that were checked before.
func explores(name string, calls map[string][]string, seen map[string]bool) bool {
	seen[name] = true
	return slices.ContainsFunc(calls[name], func(called string) bool {
		return called == "reconciletest.Explore" || called == "reconciletest.ExploreQuietly" || !seen[called] && explores(called, calls, seen)
	})
}
