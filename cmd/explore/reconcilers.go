package main

import (
	"go/ast"
	"slices"
	"strings"
)

// reconciler is a type with a method Reconcile, or a type with a method that builds a controller. If a function builds a controller without
// such a type, the reconciler is the function.
type reconciler struct {
	name string // the name of the type; "" if there is none
	file *source
	at   *ast.FuncDecl

	setups       []setup // the functions and methods that add it to a manager, the best first
	constructors []place // the functions that create it, the best first

	primary []typeRef // the kinds in calls of For
	watched []typeRef // the kinds in calls of Owns and Watches
}

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	libraryPath       = "github.com/opblocks/opblocks"
)

// findReconcilers returns the reconcilers of a package.
func (m *module) findReconcilers(p *pkg) []*reconciler {
	var found []*reconciler
	for _, isOne := range []func(place) bool{
		func(at place) bool { return at.fn.Name.Name == "Reconcile" && isReconcile(at.source, at.fn.Type) },
		func(at place) bool { return takesManager(at.source, at.fn) && at.callsBuilder() },
	} {
		p.functions(func(s *source, fn *ast.FuncDecl) {
			if fn.Recv == nil || !isOne(place{s, fn}) {
				return
			}
			name := s.typeOf(fn.Recv.List[0].Type).name
			if name != "" && !slices.ContainsFunc(found, func(r *reconciler) bool { return r.name == name }) {
				found = append(found, &reconciler{name: name, file: s, at: fn})
			}
		})
	}
	found = append(found, m.reconcilersWithoutType(p, found)...)
	m.findSetups(p, found)
	for _, r := range found {
		r.findConstructors(p)
		m.findKinds(r, p)
	}
	return found
}

// functions calls visit for each function and method of the package.
func (p *pkg) functions(visit func(*source, *ast.FuncDecl)) {
	for _, s := range p.files {
		for _, decl := range s.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				visit(s, fn)
			}
		}
	}
}

// isReconcile reports whether a method has the signature of reconcile.Reconciler.
func isReconcile(s *source, fn *ast.FuncType) bool {
	params := parameters(fn.Params)
	if len(params) != 2 || len(parameters(fn.Results)) != 2 {
		return false
	}
	request := s.typeOf(params[1].expr)
	return s.typeOf(params[0].expr) == typeRef{"context", "Context"} && request.name == "Request" && strings.HasPrefix(request.path, controllerRuntime)
}

// parameter is one parameter or result of a function.
type parameter struct {
	name string // "" if the parameter has no name
	expr ast.Expr
}

func parameters(list *ast.FieldList) (params []parameter) {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			params = append(params, parameter{"", field.Type})
		}
		for _, name := range field.Names {
			params = append(params, parameter{name.Name, field.Type})
		}
	}
	return params
}

// isManager reports whether a type is controller-runtime's Manager.
func (s *source) isManager(e ast.Expr) bool {
	t := s.typeOf(e)
	return t.name == "Manager" && strings.HasPrefix(t.path, controllerRuntime)
}

// findConstructors finds the functions that return the reconciler and do not set it up. Exported functions come first. Among them, the last
// one in the code comes first.
func (r *reconciler) findConstructors(p *pkg) {
	if r.name == "" {
		return
	}
	p.functions(func(s *source, fn *ast.FuncDecl) {
		results := parameters(fn.Type.Results)
		isSetup := slices.ContainsFunc(r.setups, func(s setup) bool { return s.fn == fn })
		if fn.Recv == nil && fn.Type.TypeParams == nil && !isSetup && len(results) > 0 && s.typeOf(results[0].expr) == (typeRef{p.path, r.name}) {
			r.constructors = append(r.constructors, place{s, fn})
		}
	})
	slices.Reverse(r.constructors)
	slices.SortStableFunc(r.constructors, func(a, b place) int { return order(!a.fn.Name.IsExported(), !b.fn.Name.IsExported()) })
}

func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// findKinds finds the kinds that the reconciler watches.
func (m *module) findKinds(r *reconciler, p *pkg) {
	for i := range r.setups {
		setup := &r.setups[i]
		from := setup.place
		switch {
		case r.name == "": // a function that builds several controllers also has their kinds
			from = place{r.file, r.at}
		case len(setup.reaches) > 1 && len(r.primary) > 0:
			continue
		}
		for _, at := range m.graph.reach(from) {
			if at.pkg != p {
				continue
			}
			primary, watched := at.kinds()
			for _, kind := range primary {
				setup.primary, r.primary = appendNew(setup.primary, kind), appendNew(r.primary, kind)
			}
			for _, kind := range watched {
				r.watched = appendNew(r.watched, kind)
			}
		}
	}
	if len(r.primary) == 0 && r.at.Name.Name == "Reconcile" {
		r.primary = r.reconciled(p)
	} else if len(r.primary) == 0 {
		r.primary = m.kindsOfSteps(r, p)
	}
}

// kinds returns the kinds that a function gives to the builder of a controller: in For, and in Owns and Watches.
func (at place) kinds() (primary, watched []typeRef) {
	ast.Inspect(at.fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		kind := at.typeOf(call.Args[0])
		if kind.path == "" || kind.name == "" || !ast.IsExported(kind.name) {
			return true
		}
		switch fun.Sel.Name {
		case "For":
			primary = appendNew(primary, kind)
		case "Owns", "Watches", "WatchesMetadata":
			watched = appendNew(watched, kind)
		}
		return true
	})
	return primary, watched
}

func appendNew(kinds []typeRef, kind typeRef) []typeRef {
	if slices.Contains(kinds, kind) {
		return kinds
	}
	return append(kinds, kind)
}

// reconciled returns the kind of the first object that Reconcile creates. Into this object it reads the object that it reconciles.
func (r *reconciler) reconciled(p *pkg) (kinds []typeRef) {
	ast.Inspect(r.at, func(n ast.Node) bool {
		var t ast.Expr
		switch n := n.(type) {
		case *ast.CompositeLit:
			t = n.Type
		case *ast.ValueSpec:
			t = n.Type
		}
		if sel, ok := t.(*ast.SelectorExpr); ok && len(kinds) == 0 {
			kind := r.file.typeOf(sel)
			if kind.path != p.path && !strings.HasPrefix(kind.path, controllerRuntime) && strings.Contains(kind.path, ".") {
				kinds = append(kinds, kind)
			}
		}
		return len(kinds) == 0
	})
	return kinds
}
