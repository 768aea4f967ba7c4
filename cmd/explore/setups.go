package main

import (
	"go/ast"
	"slices"
	"strings"
)

// setup is a function or a method that adds controllers to a manager.
type setup struct {
	place
	reaches []*reconciler // the reconcilers of its package that it adds to the manager
	primary []typeRef     // the kinds in calls of For
}

// isMethod reports whether the set-up is a method.
func (s setup) isMethod() bool { return s.fn.Recv != nil }

// name returns the package and the name of the function.
func (s setup) name() typeRef { return typeRef{s.pkg.path, s.fn.Name.Name} }

// takesManager reports whether a function has a parameter for a manager.
func takesManager(s *source, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(parameters(fn.Type.Params), func(p parameter) bool { return s.isManager(p.expr) })
}

// isSetup reports whether a function with a parameter for a manager may add a controller. It returns false for a constructor, which has
// other results than an error and builds no controller. It also returns false for a function that only builds a webhook.
func (m *module) isSetup(at place) bool {
	results := parameters(at.fn.Type.Results)
	onlyError := len(results) == 0 || len(results) == 1 && isError(results[0].expr)
	return onlyError && !mentions(at.fn.Body, "NewWebhookManagedBy") || m.buildsController(at)
}

func isError(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "error"
}

// findSetups finds the functions and methods that set up each reconciler. Methods come first, SetupWithManager before others. Then come
// functions that name the reconciler's type. Last come functions that only call other functions which do.
func (m *module) findSetups(p *pkg, all []*reconciler) {
	var methods, functions []setup
	p.functions(func(s *source, fn *ast.FuncDecl) {
		found := setup{place: place{s, fn}}
		if fn.Type.TypeParams != nil || fn.Body == nil || !takesManager(s, fn) || !m.isSetup(found.place) {
			return
		}
		found.reaches = m.reached(found.place, all)
		if fn.Recv != nil {
			methods = append(methods, found)
		} else {
			functions = append(functions, found)
		}
	})
	for _, r := range all {
		for _, method := range methods {
			if r.name != "" && method.typeOf(method.fn.Recv.List[0].Type).name == r.name {
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
		slices.SortStableFunc(r.setups[begin:], func(a, b setup) int { return order(!r.isIn(a.place), !r.isIn(b.place)) })
	}
}

// order compares two booleans: false comes before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// isIn reports whether a function names the type of the reconciler. If the reconciler has no type, it reports whether this is the function
// that builds its controller.
func (r *reconciler) isIn(at place) bool {
	if r.name == "" {
		return at.fn == r.at
	}
	return mentions(at.fn, r.name)
}

// reached returns the reconcilers that a function adds to a manager, itself or by functions and methods of its package that it calls.
func (m *module) reached(at place, all []*reconciler) (found []*reconciler) {
	for _, called := range m.graph.reach(at) {
		for _, r := range all {
			if called.pkg == at.pkg && r.isIn(called) && !slices.Contains(found, r) {
				found = append(found, r)
			}
		}
	}
	return found
}

// reconcilersWithoutType returns a reconciler for each function that builds a controller without a type: from a reconcile function, or from
// steps of package reconcile. An unexported function counts only if an exported function calls it.
func (m *module) reconcilersWithoutType(p *pkg, others []*reconciler) (found []*reconciler) {
	var exported, inMethods []place
	p.functions(func(s *source, fn *ast.FuncDecl) {
		switch {
		case fn.Recv != nil:
			inMethods = append(inMethods, m.graph.reach(place{s, fn})...)
		case fn.Name.IsExported():
			exported = append(exported, m.graph.reach(place{s, fn})...)
		}
	})
	p.functions(func(s *source, fn *ast.FuncDecl) {
		at := place{s, fn}
		if fn.Recv == nil && fn.Type.TypeParams == nil && takesManager(s, fn) && at.callsBuilder() && len(m.reached(at, others)) == 0 && isIn(exported, fn) && !isIn(inMethods, fn) {
			found = append(found, &reconciler{file: s, at: fn})
		}
	})
	return found
}

// buildsController reports whether a function builds a controller, itself or by functions of the module that it calls.
func (m *module) buildsController(at place) bool {
	return slices.ContainsFunc(m.graph.reach(at), place.callsBuilder)
}

// callsBuilder reports whether the function itself calls the builder of controller-runtime or of package reconcile.
func (at place) callsBuilder() (builds bool) {
	if at.fn.Body == nil {
		return false
	}
	ast.Inspect(at.fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			fun := at.typeOf(withoutTypes(call.Fun))
			builds = builds || fun.name == "NewControllerManagedBy" || fun.name == "ControllerManagedBy" || fun.path == libraryPath+"/reconcile" && fun.name == "For"
		}
		return !builds
	})
	return builds
}

// withoutTypes returns the expression of a function without its type arguments.
func withoutTypes(e ast.Expr) ast.Expr {
	if generic, ok := e.(*ast.IndexExpr); ok {
		return generic.X
	}
	return e
}

// kindsOfSteps returns the kinds of the steps of package reconcile from which a function builds a controller. If they cannot be found in
// the function, it returns the kinds of all steps in the package.
func (m *module) kindsOfSteps(r *reconciler, p *pkg) (kinds []typeRef) {
	for _, at := range m.graph.reach(place{r.file, r.at}) {
		kinds = at.kindsOfSteps(at.fn, kinds)
	}
	if len(kinds) == 0 {
		for _, s := range p.files {
			kinds = s.kindsOfSteps(s.File, kinds)
		}
	}
	return kinds
}

// kindsOfSteps adds the kinds of steps and builders of package reconcile in a node to kinds.
func (s *source) kindsOfSteps(n ast.Node, kinds []typeRef) []typeRef {
	ast.Inspect(n, func(n ast.Node) bool {
		var of typeRef
		var kind ast.Expr
		switch n := n.(type) {
		case *ast.IndexExpr:
			of, kind = s.typeOf(n.X), n.Index
		case *ast.CallExpr:
			if fn, ok := onlyArgument(n).(*ast.FuncLit); ok && len(parameters(fn.Type.Params)) == 3 {
				of, kind = s.typeOf(n.Fun), parameters(fn.Type.Params)[2].expr
			}
		}
		if kind != nil && of.path == libraryPath+"/reconcile" && slices.Contains([]string{"NamedStep", "For", "Func"}, of.name) {
			if t := s.typeOf(kind); strings.Contains(t.path, ".") {
				kinds = appendNew(kinds, t)
			}
		}
		return true
	})
	return kinds
}

// onlyArgument returns the argument of a call that has exactly one. Otherwise it returns nil.
func onlyArgument(call *ast.CallExpr) ast.Expr {
	if len(call.Args) != 1 {
		return nil
	}
	return call.Args[0]
}

// title returns the name of the reconciler in the test: its type, or else the function that builds its controller.
func (r *reconciler) title() string {
	if r.name == "" {
		return r.at.Name.Name
	}
	return r.name
}
