package main

import (
	"go/ast"
	"slices"
	"strings"
)

// setup is a function or a method that adds controllers to a manager.
type setup struct {
	fn      *ast.FuncDecl // a method if it has a receiver
	file    *source
	reaches []*reconciler // the reconcilers that it adds; a method has none but its own
	primary []typeRef     // For
}

// isMethod reports whether it is a method of a reconciler.
func (s setup) isMethod() bool { return s.fn.Recv != nil }

// takesManager reports whether a function has a parameter for a manager.
func takesManager(s *source, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(parameters(fn.Type.Params), func(p parameter) bool { return s.isManager(p.expr) })
}

// findSetups finds the set-ups of reconcilers: methods, SetupWithManager first, then functions that mention the type, and then functions that reach
// it by others of the package.
func (p *pkg) findSetups(all []*reconciler) {
	var methods, functions []setup
	p.functions(func(s *source, fn *ast.FuncDecl) {
		switch {
		case !takesManager(s, fn):
		case fn.Recv != nil:
			methods = append(methods, setup{fn: fn, file: s})
		case len(parameters(fn.Type.Results)) <= 1:
			functions = append(functions, setup{fn: fn, file: s, reaches: p.reached(fn, all)})
		}
	})
	for _, r := range all {
		for _, method := range methods {
			if method.file.typeOf(method.fn.Recv.List[0].Type).name == r.name {
				r.setups = append(r.setups, method)
			}
		}
		slices.SortStableFunc(r.setups, func(a, b setup) int {
			return order(a.fn.Name.Name != "SetupWithManager", b.fn.Name.Name != "SetupWithManager")
		})
		begin := len(r.setups)
		for _, function := range functions {
			if slices.Contains(function.reaches, r) {
				r.setups = append(r.setups, function)
			}
		}
		slices.SortStableFunc(r.setups[begin:], func(a, b setup) int { return order(!mentions(a.fn, r.name), !mentions(b.fn, r.name)) })
	}
}

// order orders false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// reached returns the reconcilers that a function mentions, itself or by functions and constructors of the package that it calls.
func (p *pkg) reached(fn *ast.FuncDecl, all []*reconciler) (found []*reconciler) {
	for _, called := range p.callees(fn) {
		for _, r := range all {
			if mentions(called, r.name) && !slices.Contains(found, r) {
				found = append(found, r)
			}
		}
	}
	return found
}

// callees returns a function, and the functions of the package that it calls, directly or by others.
func (p *pkg) callees(fn *ast.FuncDecl) []*ast.FuncDecl {
	all := []*ast.FuncDecl{fn}
	for i := 0; i < len(all); i++ {
		p.functions(func(_ *source, other *ast.FuncDecl) {
			if other.Recv == nil && !slices.Contains(all, other) && mentions(all[i].Body, other.Name.Name) {
				all = append(all, other)
			}
		})
	}
	return all
}

// reconcilersWithoutType returns a reconciler for each exported function that builds a controller of a function, or of steps of package reconcile. These have
// no type with a method Reconcile.
func (p *pkg) reconcilersWithoutType(others []*reconciler) (found []*reconciler) {
	p.functions(func(s *source, fn *ast.FuncDecl) {
		if fn.Recv != nil || !fn.Name.IsExported() || fn.Body == nil || !takesManager(s, fn) || len(parameters(fn.Type.Results)) > 1 ||
			len(p.reached(fn, others)) > 0 || !s.buildsController(fn) {
			return
		}
		r := &reconciler{file: s, at: fn}
		r.setups = []setup{{fn: fn, file: s, reaches: []*reconciler{r}}}
		found = append(found, r)
	})
	return found
}

// buildsController reports whether a function calls the builder of controller-runtime, or of package reconcile.
func (s *source) buildsController(fn *ast.FuncDecl) (builds bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			fun := s.typeOf(call.Fun)
			builds = builds || fun.name == "NewControllerManagedBy" || fun.name == "ControllerManagedBy" || fun.path == libraryPath+"/reconcile" && fun.name == "For"
		}
		return !builds
	})
	return builds
}

// kindsOfSteps returns the kinds for which the package has steps of package reconcile.
func (p *pkg) kindsOfSteps() (kinds []typeRef) {
	for _, s := range p.files {
		ast.Inspect(s.File, func(n ast.Node) bool {
			if generic, ok := n.(*ast.IndexExpr); ok && s.typeOf(generic.X) == (typeRef{libraryPath + "/reconcile", "NamedStep"}) {
				if kind := s.typeOf(generic.Index); strings.Contains(kind.path, ".") {
					kinds = appendNew(kinds, kind)
				}
			}
			return true
		})
	}
	return kinds
}

// title names the reconciler in the test: by its type, or else by the function that sets it up.
func (r *reconciler) title() string {
	if r.name == "" {
		return r.setups[0].fn.Name.Name
	}
	return r.name
}
