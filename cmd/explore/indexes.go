package main

import (
	"go/ast"
	"slices"
)

// wireIndexes adds the statements that set up the field indexes which no set-up of a reconciler makes. Without them a list by such a field fails.
func (g *generator) wireIndexes() {
	within := g.p.withinSetups()
	for _, p := range g.program.sources() {
		p.functions(func(s *source, fn *ast.FuncDecl) {
			if slices.Contains(within, fn) || !g.program.mayRun(s, fn) {
				return
			}
			at := indexedIn(fn)
			if at == nil {
				return
			}
			own := setup{fn: fn, file: s}
			isFunction := fn.Recv == nil && p.name != "main" && len(parameters(fn.Type.Results)) <= 1 && fn.Name.IsExported() && g.m.mayImport(g.p, p.path)
			if code, ok := g.try(func() (string, bool) { return g.callFunction(own) }); isFunction && ok {
				g.statements = append(g.statements, "\n// field indexes", code)
				return
			}
			g.statements = append(g.statements, "\n"+fillIn("set up the field index of "+g.m.position(at.Pos())))
		})
	}
}

// mayRun reports whether main runs a function that sets up an index: a function of a main package, or one that main calls. It counts each method, since it does not know who calls it.
func (pr *program) mayRun(s *source, fn *ast.FuncDecl) bool {
	return s.pkg.name == "main" || fn.Recv != nil || pr.isCalled(setup{fn: fn, file: s})
}

// indexedIn returns the call of IndexField in a function, nil if there is none.
func indexedIn(fn *ast.FuncDecl) (found ast.Node) {
	if fn.Body == nil {
		return nil
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && found == nil {
			if fun, ok := call.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "IndexField" {
				found = call
			}
		}
		return found == nil
	})
	return found
}

// withinSetups returns the functions and methods of the package that the set-ups of its reconcilers reach.
func (p *pkg) withinSetups() (all []*ast.FuncDecl) {
	for _, r := range p.reconcilers {
		for _, s := range r.setups {
			all = append(all, p.callees(s.fn)...)
		}
	}
	for i := 0; i < len(all); i++ { // methods too, which callees does not follow
		p.functions(func(_ *source, fn *ast.FuncDecl) {
			if fn.Recv != nil && !slices.Contains(all, fn) && mentions(all[i].Body, fn.Name.Name) {
				all = append(all, fn)
			}
		})
	}
	return all
}
