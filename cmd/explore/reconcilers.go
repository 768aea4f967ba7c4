package main

import (
	"go/ast"
	"slices"
	"strings"
)

// reconciler is a type with a method Reconcile.
type reconciler struct {
	name string
	file *source
	at   ast.Node

	setups      []setup       // what adds it to a manager, the best first
	constructor *ast.FuncDecl // nil if none is found
	constructed *source

	primary []typeRef // For
	watched []typeRef // Owns and Watches
}

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	libraryPath       = "github.com/opblocks/opblocks"
)

// findReconcilers returns the reconcilers of a package.
func (m *module) findReconcilers(p *pkg) []*reconciler {
	var found []*reconciler
	p.functions(func(s *source, fn *ast.FuncDecl) {
		if fn.Name.Name != "Reconcile" || fn.Recv == nil || !isReconcile(s, fn.Type) {
			return
		}
		r := &reconciler{name: s.typeOf(fn.Recv.List[0].Type).name, file: s, at: fn}
		if r.name != "" {
			found = append(found, r)
		}
	})
	for _, r := range found {
		r.findConstructor(p)
	}
	p.findSetups(found)
	found = append(found, p.reconcilersWithoutType(found)...)
	for _, r := range found {
		r.findKinds(p)
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
	name string // "" if it has none
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

// findConstructor looks for the function that makes the reconciler.
func (r *reconciler) findConstructor(p *pkg) {
	p.functions(func(s *source, fn *ast.FuncDecl) {
		results := parameters(fn.Type.Results)
		if fn.Recv == nil && len(results) > 0 && s.typeOf(results[0].expr) == (typeRef{p.path, r.name}) {
			r.constructor, r.constructed = fn, s
		}
	})
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
func (r *reconciler) findKinds(p *pkg) {
	for i := range r.setups {
		setup := &r.setups[i]
		if len(setup.reaches) > 1 && len(r.primary) > 0 { // it has the kinds of other reconcilers too
			continue
		}
		ast.Inspect(setup.fn, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			kind := setup.file.typeOf(call.Args[0])
			if kind.path == "" || kind.name == "" || !isExported(kind.name) {
				return true
			}
			switch fun.Sel.Name {
			case "For":
				setup.primary, r.primary = appendNew(setup.primary, kind), appendNew(r.primary, kind)
			case "Owns", "Watches", "WatchesMetadata":
				r.watched = appendNew(r.watched, kind)
			}
			return true
		})
	}
	switch {
	case len(r.primary) > 0:
	case r.name == "":
		r.primary = p.kindsOfSteps()
	default:
		r.primary = r.reconciled(p)
	}
}

func appendNew(kinds []typeRef, kind typeRef) []typeRef {
	if slices.Contains(kinds, kind) {
		return kinds
	}
	return append(kinds, kind)
}

func isExported(name string) bool { return ast.IsExported(name) }

// reconciled returns the kind of the first object that Reconcile makes: it reads the object that it reconciles.
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
