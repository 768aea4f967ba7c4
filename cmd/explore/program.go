package main

import (
	"go/ast"
	"slices"
)

// visit calls see for all nodes of functions outside of the package, main packages first, until it returns true.
func (pr *program) visit(see func(ast.Node, place) bool) {
	done := false
	for _, p := range pr.sources() {
		if p == pr.p && p.name != "main" {
			continue
		}
		p.functions(func(s *source, fn *ast.FuncDecl) {
			if done || fn.Body == nil {
				return
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				done = done || n != nil && see(n, place{s, fn})
				return !done
			})
		})
	}
}

// literals returns the literals by which a function of main makes values of a type; none if there are none. If an if statement has several branches, only
// the first counts.
func (pr *program) literals(t typeRef) (found []*ast.CompositeLit, at place) {
	pr.visit(func(n ast.Node, where place) bool {
		literal, ok := n.(*ast.CompositeLit)
		if ok && literal.Type != nil && where.typeOf(literal.Type) == t && (len(found) == 0 || at.fn == where.fn && !excludes(at.fn, found[0], literal)) {
			found, at = append(found, literal), where
		}
		return false
	})
	return found, at
}

// calls returns the arguments of the calls of a function in one function of main; none if it is not called.
func (pr *program) calls(fn typeRef) (all [][]ast.Expr, at place) {
	var first ast.Node
	pr.visit(func(n ast.Node, where place) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && where.typeOf(call.Fun) == fn && (first == nil || at.fn == where.fn && !excludes(at.fn, first, call)) {
			if first == nil {
				first = call
			}
			all, at = append(all, call.Args), where
		}
		return false
	})
	return all, at
}

// call returns the arguments of the first call.
func (pr *program) call(fn typeRef) (args []ast.Expr, at place) {
	all, at := pr.calls(fn)
	if len(all) == 0 {
		return nil, at
	}
	return all[0], at
}

// excludes reports whether two nodes of a function are in different branches of an if statement.
func excludes(fn *ast.FuncDecl, a, b ast.Node) (excluded bool) {
	in := func(n, outer ast.Node) bool { return outer != nil && outer.Pos() <= n.Pos() && n.End() <= outer.End() }
	ast.Inspect(fn, func(n ast.Node) bool {
		if branches, ok := n.(*ast.IfStmt); ok && branches.Else != nil {
			excluded = excluded || in(a, branches.Body) && in(b, branches.Else) || in(a, branches.Else) && in(b, branches.Body)
		}
		return true
	})
	return excluded
}

// adders returns the functions that set up several reconcilers and that main calls, or without which one of them cannot be set up.
func (pr *program) adders() (found []setup) {
	for _, r := range pr.reconcilers {
		for i, s := range r.setups {
			isKnown := slices.ContainsFunc(found, func(other setup) bool {
				return other.fn == s.fn || slices.ContainsFunc(other.reaches, func(o *reconciler) bool { return slices.Contains(s.reaches, o) })
			})
			if s.isMethod() || len(s.reaches) < 2 || isKnown || !s.fn.Name.IsExported() {
				continue
			}
			if pr.isCalled(s) || i == 0 {
				found = append(found, s)
			}
		}
	}
	return found
}

// isCalled reports whether main calls a function.
func (pr *program) isCalled(s setup) bool {
	calls, _ := pr.calls(typeRef{s.file.pkg.path, s.fn.Name.Name})
	return len(calls) > 0
}

// chosen returns the set-ups of one reconciler that main calls: functions, or else methods. If main calls none, that is the first one.
func (pr *program) chosen(r *reconciler) (called []setup) {
	var own []setup
	for _, s := range r.setups {
		if len(s.reaches) > 1 {
			continue
		}
		if own = append(own, s); !s.isMethod() && pr.isCalled(s) {
			called = append(called, s)
		}
	}
	if len(called) > 0 || len(own) == 0 {
		return called
	}
	for _, s := range own {
		if s.isMethod() && pr.callsMethod(r, s.fn.Name.Name) {
			called = append(called, s)
		}
	}
	if len(called) == 0 {
		return own[:1]
	}
	return called
}

// callsMethod reports whether main calls a method of a reconciler. If main does not show the type of the value, the value is the reconciler if no other reconciler has such a
// method.
func (pr *program) callsMethod(r *reconciler, method string) (called bool) {
	shared := slices.ContainsFunc(pr.p.reconcilers, func(other *reconciler) bool {
		return other != r && slices.ContainsFunc(other.setups, func(s setup) bool { return s.isMethod() && s.fn.Name.Name == method })
	})
	pr.visit(func(n ast.Node, at place) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || fun.Sel.Name != method {
			return false
		}
		name, known := pr.receiver(fun.X, at)
		called = called || known && name == r.name || !known && !shared
		return called
	})
	return called
}

// receiver returns the type of a value, if it is a type of the package and main shows it: by a literal, or by the result of a constructor.
func (pr *program) receiver(e ast.Expr, at place) (name string, known bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return pr.receiver(e.X, at)
	case *ast.UnaryExpr:
		return pr.receiver(e.X, at)
	case *ast.CompositeLit:
		t := at.typeOf(e.Type)
		return t.name, t.path == pr.p.path
	case *ast.CallExpr:
		fun := at.typeOf(e.Fun)
		for _, r := range pr.p.reconcilers {
			if r.constructor != nil && fun == (typeRef{pr.p.path, r.constructor.Name.Name}) {
				return r.name, true
			}
		}
	case *ast.Ident:
		if define := assigned(at.fn, e.Name); define != nil {
			return pr.receiver(define.Rhs[0], at)
		}
	}
	return "", false
}

// reconciled returns the kinds for which main sets up a reconciler, each once.
func (pr *program) reconciled() (kinds []typeRef) {
	for _, r := range pr.reconcilers {
		own := r.primary
		if chosen := pr.chosen(r); len(chosen) > 0 && len(chosen[0].primary) > 0 {
			own = nil
			for _, s := range chosen {
				own = append(own, s.primary...)
			}
		}
		for _, kind := range own {
			kinds = appendNew(kinds, kind)
		}
	}
	return kinds
}
