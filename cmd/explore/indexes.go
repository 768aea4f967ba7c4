package main

import (
	"go/ast"
	"slices"
	"strings"
)

// wireIndexes adds the statements that set up field indexes, except the indexes that reconcilers set up themselves. Without its index, a
// list by a field would fail.
func (g *generator) wireIndexes() {
	within := g.m.withinSetups()
	var called []*ast.FuncDecl
	for _, p := range g.program.sources() {
		p.functions(func(s *source, fn *ast.FuncDecl) {
			at := indexedIn(fn)
			if at == nil || isIn(within, fn) {
				return
			}
			callable, isRun := g.program.callersOf(place{s, fn}, within)
			for _, outer := range callable {
				if slices.Contains(called, outer.fn) {
					return
				}
				if code, ok := g.callIndex(outer); ok {
					called = append(called, outer.fn)
					g.statements = append(g.statements, "\n// field indexes", code)
					return
				}
			}
			if isRun {
				g.statements = append(g.statements, "\n"+fillIn("set up the field index of "+g.m.position(at.Pos())))
			}
		})
	}
}

// callIndex returns the statement that calls a function which sets up field indexes. It returns false if the test cannot import the
// function, or if the user would have to fill in an argument.
func (g *generator) callIndex(at place) (string, bool) {
	if !g.m.mayImport(g.p, at.pkg.path) {
		return "", false
	}
	calls := append(g.program.calls(typeRef{at.pkg.path, at.fn.Name.Name}), call{})
	return g.try(func() (string, bool) {
		code, ok := g.callFunction(at, calls[0])
		return code, ok && !strings.Contains(code, fillIn(""))
	})
}

// callersOf returns the functions that the test may call so that the function at runs, the nearest first. These are exported functions that
// another package calls, and that build no controller. isRun reports whether the operator runs the function. It does if main or another
// package calls it, directly or indirectly. A method always counts, since its callers cannot be found.
func (pr *program) callersOf(at place, within []place) (callable []place, isRun bool) {
	all := []place{at}
	for i := 0; i < len(all); i++ {
		fn := all[i].fn
		if all[i].pkg.name == "main" || fn.Recv != nil {
			isRun = true
			continue
		}
		isCalled := false
		for _, caller := range pr.callers(all[i]) {
			if isIn(within, caller.fn) {
				continue
			}
			isCalled = isCalled || caller.pkg != all[i].pkg
			if !isIn(all, caller.fn) {
				all = append(all, caller)
			}
		}
		isRun = isRun || isCalled
		if isCalled && fn.Name.IsExported() && !pr.m.buildsController(all[i]) {
			callable = append(callable, all[i])
		}
	}
	return callable, isRun
}

// callers returns the functions and methods of the program that call or name a function.
func (pr *program) callers(of place) (found []place) {
	for _, p := range pr.sources() {
		p.functions(func(s *source, fn *ast.FuncDecl) {
			if at := (place{s, fn}); isIn(pr.m.graph.references(at), of.fn) {
				found = append(found, at)
			}
		})
	}
	return found
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

// withinSetups returns the functions and methods that are called, directly or indirectly, when the module's reconcilers are set up.
func (m *module) withinSetups() []place {
	if m.within != nil {
		return m.within
	}
	var setups []place
	for _, p := range m.sources() {
		if p.reconcilers == nil {
			p.reconcilers = m.findReconcilers(p)
		}
		for _, r := range p.reconcilers {
			for _, s := range r.setups {
				setups = append(setups, s.place)
			}
		}
	}
	m.within = m.graph.reach(setups...)
	for i := 0; i < len(m.within); i++ { // methods of values whose type cannot be found
		at := m.within[i]
		at.pkg.functions(func(s *source, fn *ast.FuncDecl) {
			if fn.Recv != nil && indexedIn(fn) != nil && !isIn(m.within, fn) && mentions(at.fn.Body, fn.Name.Name) {
				m.within = append(m.within, place{s, fn})
			}
		})
	}
	return m.within
}
