package main

import (
	"go/ast"
	"go/token"
	"slices"
)

// graph finds which functions of the module a function calls.
type graph struct {
	m        *module
	referred map[*ast.FuncDecl][]place // results of references
	methods  map[string]bool           // the names of all methods of the module; see hasMethod
}

// references returns the functions and methods of the module that the body of a function calls or names. It finds a method only if the
// function's code shows the type of the value.
func (g *graph) references(at place) (found []place) {
	if known, ok := g.referred[at.fn]; ok {
		return known
	}
	add := func(imported, receiver, name string) {
		if fn, s := g.functionOf(imported, declaration{receiver, name}); fn != nil && !isIn(found, fn) {
			found = append(found, place{s, fn})
		}
	}
	var see func(ast.Node) bool
	see = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && at.imported(x.Name) != "" {
				add(at.imported(x.Name), "", n.Sel.Name)
				return false
			}
			if g.hasMethod(n.Sel.Name) {
				t, _ := g.valueOf(n.X, at)
				add(t.path, t.name, n.Sel.Name)
			}
			ast.Inspect(n.X, see)
			return false // the selected name is not a function of the package
		case *ast.Ident:
			add(at.pkg.path, "", n.Name)
		}
		return true
	}
	if at.fn.Body != nil {
		ast.Inspect(at.fn.Body, see)
	}
	g.referred[at.fn] = found
	return found
}

// hasMethod reports whether any type of the module has a method of this name. If none has, references does not search for the type of the
// value, which would take time.
func (g *graph) hasMethod(name string) bool {
	if g.methods == nil {
		g.methods = map[string]bool{}
		for _, p := range g.m.sources() {
			p.functions(func(_ *source, fn *ast.FuncDecl) {
				if fn.Recv != nil {
					g.methods[fn.Name.Name] = true
				}
			})
		}
	}
	return g.methods[name]
}

// reach returns the functions from, and the functions and methods of the module that they call or name, directly or indirectly.
func (g *graph) reach(from ...place) []place {
	all, known := slices.Clone(from), map[*ast.FuncDecl]bool{}
	for _, at := range from {
		known[at.fn] = true
	}
	for i := 0; i < len(all); i++ {
		for _, next := range g.references(all[i]) {
			if !known[next.fn] {
				known[next.fn] = true
				all = append(all, next)
			}
		}
	}
	return all
}

// isIn reports whether all contains a function.
func isIn(all []place, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(all, func(p place) bool { return p.fn == fn })
}

// valueOf returns the type of a value, if the function's code shows it. It also returns the node that creates the value: a literal, a call
// or a declaration.
func (g *graph) valueOf(e ast.Expr, at place) (typeRef, ast.Node) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return g.valueOf(e.X, at)
	case *ast.StarExpr:
		return g.valueOf(e.X, at)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return g.valueOf(e.X, at)
		}
	case *ast.CompositeLit:
		return at.typeOf(e), e
	case *ast.CallExpr:
		if t := at.typeOf(e); t.name != "" { // new(T)
			return t, e
		}
		called := at.typeOf(e.Fun)
		if fn, s := g.functionOf(called.path, declaration{"", called.name}); fn != nil {
			if results := parameters(fn.Type.Results); len(results) > 0 {
				return s.typeOf(results[0].expr), e
			}
		}
	case *ast.Ident:
		if define := assigned(at.fn, e.Name); define != nil {
			return g.valueOf(define.Rhs[0], at)
		}
		if t, spec := declaredType(at.fn, e.Name); t != nil {
			return at.typeOf(t), spec
		}
	}
	return typeRef{}, nil
}

// declaredType returns the type of the parameter, the receiver or the variable with this name in a function. It returns nil if there is
// none. For a variable it also returns the declaration.
func declaredType(fn *ast.FuncDecl, name string) (t ast.Expr, spec ast.Node) {
	if fn == nil {
		return nil, nil
	}
	for _, list := range []*ast.FieldList{fn.Recv, fn.Type.Params} {
		for _, p := range parameters(list) {
			if p.name == name {
				return p.expr, nil
			}
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil && slices.ContainsFunc(v.Names, func(id *ast.Ident) bool { return id.Name == name }) {
			t, spec = v.Type, v
		}
		return spec == nil
	})
	return t, spec
}

// declaration is the name of a function, or of a method and its type.
type declaration struct{ receiver, name string }

// functionOf returns a function or a method of a package of the module. It returns nil if there is none, or if it has type parameters.
func (g *graph) functionOf(imported string, named declaration) (*ast.FuncDecl, *source) {
	p := g.m.packageOf(imported)
	if p == nil {
		return nil, nil
	}
	if p.declared == nil {
		p.declared = map[declaration]place{}
		p.functions(func(s *source, fn *ast.FuncDecl) {
			receiver := ""
			if fn.Recv != nil {
				receiver = s.typeOf(fn.Recv.List[0].Type).name
			}
			if fn.Type.TypeParams == nil && (receiver != "" || fn.Recv == nil) {
				p.declared[declaration{receiver, fn.Name.Name}] = place{s, fn}
			}
		})
	}
	at := p.declared[named]
	return at.fn, at.source
}
