package main

import (
	"go/ast"
	"slices"
)

// program is the code of a main package that sets up the reconcilers of a package: the main package, and the packages of the module that it
// imports. If the field main is nil, it is the whole module.
type program struct {
	m           *module
	p           *pkg
	main        *pkg          // nil: the whole module
	reconcilers []*reconciler // the reconcilers that the program sets up

	// These keep results that were found before.
	callsTo map[typeRef][]call
	callsOf map[*reconciler][2][]methodCall
	madeOf  map[*reconciler][]*instance
}

func (m *module) program(p, main *pkg) *program {
	return &program{m: m, p: p, main: main, reconcilers: p.reconcilers,
		callsTo: map[typeRef][]call{}, callsOf: map[*reconciler][2][]methodCall{}, madeOf: map[*reconciler][]*instance{}}
}

// sources returns the packages of the program, main packages first.
func (pr *program) sources() []*pkg {
	all := pr.m.sources()
	if pr.main == nil {
		return all
	}
	imported := pr.m.closure(pr.main)
	return slices.DeleteFunc(slices.Clone(all), func(p *pkg) bool { return !slices.Contains(imported, p) })
}

// visit calls see for all nodes of the program outside of the package of the reconcilers, main packages first, until see returns true. If
// the package of the reconcilers is a main package, it is visited too.
func (pr *program) visit(see func(ast.Node, place) bool) {
	done := false
	for _, p := range pr.sources() {
		if p == pr.p && p.name != "main" {
			continue
		}
		for _, s := range p.files {
			for _, decl := range s.Decls {
				fn, _ := decl.(*ast.FuncDecl) // nil for a declaration of variables
				ast.Inspect(decl, func(n ast.Node) bool {
					done = done || n != nil && see(n, place{s, fn})
					return !done
				})
			}
		}
	}
}

// oneFunction selects nodes that belong to the same function as the first added node. If that node is in a branch of an if or a switch
// statement, nodes in the other branches are not selected.
type oneFunction struct {
	first ast.Node
	at    place
}

// add reports whether a node is selected.
func (o *oneFunction) add(n ast.Node, at place) bool {
	if o.first == nil {
		o.first, o.at = n, at
		return true
	}
	return at.fn != nil && o.at.fn == at.fn && !excludes(at.fn, o.first, n)
}

// excludes reports whether only one of two nodes of a function can run: they are in different branches of a statement, or one is in a
// branch that returns, and the other one follows after it.
func excludes(fn *ast.FuncDecl, a, b ast.Node) (excluded bool) {
	in := func(n, outer ast.Node) bool { return outer.Pos() <= n.Pos() && n.End() <= outer.End() }
	apart := func(x, y ast.Node) bool { return in(a, x) && in(b, y) || in(a, y) && in(b, x) }
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return in(a, n) && in(b, n)
		case *ast.IfStmt:
			excluded = excluded || n.Else != nil && apart(n.Body, n.Else) || ends(n.Body) && (in(a, n.Body) && b.Pos() > n.End() || in(b, n.Body) && a.Pos() > n.End())
		case *ast.SwitchStmt:
			for i, clause := range n.Body.List {
				excluded = excluded || slices.ContainsFunc(n.Body.List[:i], func(other ast.Stmt) bool { return apart(clause, other) })
			}
		}
		return !excluded
	})
	return excluded
}

// ends reports whether a block ends with a return statement.
func ends(block *ast.BlockStmt) bool {
	if len(block.List) == 0 {
		return false
	}
	_, ok := block.List[len(block.List)-1].(*ast.ReturnStmt)
	return ok
}

// call is a call of a function in the operator's code. If the code only names the function, the call has no arguments.
type call struct {
	args     []ast.Expr
	isSpread bool // the last argument has three dots
	at       place
}

func callOf(e *ast.CallExpr, at place) call { return call{e.Args, e.Ellipsis.IsValid(), at} }

// calls returns the calls of a function in the first function of main that calls or names it. If none does, it returns none.
func (pr *program) calls(fn typeRef) (all []call) {
	if known, ok := pr.callsTo[fn]; ok {
		return known
	}
	defer func() { pr.callsTo[fn] = all }()
	counted, called := oneFunction{}, map[ast.Node]bool{}
	pr.visit(func(n ast.Node, at place) bool {
		var fun ast.Expr
		found := call{at: at}
		switch n := n.(type) {
		case *ast.CallExpr:
			fun, found, called[n.Fun] = n.Fun, callOf(n, at), true
		case *ast.SelectorExpr:
			if !called[n] {
				fun = n
			}
		}
		if fun != nil && at.typeOf(fun) == fn && counted.add(n, at) {
			all = append(all, found)
		}
		return false
	})
	return all
}

// isCalled reports whether main calls a function.
func (pr *program) isCalled(s setup) bool { return len(pr.calls(s.name())) > 0 }

// setsUp reports whether the program creates a value of the reconciler's type, or calls a function or method that sets up the reconciler.
func (pr *program) setsUp(r *reconciler) bool {
	if slices.ContainsFunc(r.setups, func(s setup) bool { return !s.isMethod() && pr.isCalled(s) }) || len(pr.made(r)) > 0 {
		return true
	}
	typed, _ := pr.methodCalls(r)
	return len(typed) > 0
}

// adders returns exported functions that set up several reconcilers at once. Such a function is returned if main calls it, or if one of its
// reconcilers cannot be set up in another way. No two of them set up the same reconciler.
func (pr *program) adders() (found []setup) {
	overlaps := func(s setup) bool {
		return slices.ContainsFunc(found, func(other setup) bool {
			return slices.ContainsFunc(other.reaches, func(r *reconciler) bool { return slices.Contains(s.reaches, r) })
		})
	}
	for _, isNeeded := range []func(*reconciler, setup) bool{
		func(_ *reconciler, s setup) bool { return pr.isCalled(s) },
		func(r *reconciler, _ setup) bool {
			return !slices.ContainsFunc(r.setups, r.isOwn) && len(pr.made(r)) == 0
		},
	} {
		for _, r := range pr.reconcilers {
			for _, s := range r.setups {
				if !s.isMethod() && len(s.reaches) > 1 && s.fn.Name.IsExported() && !overlaps(s) && isNeeded(r, s) {
					found = append(found, s)
				}
			}
		}
	}
	return found
}

// isOwn reports whether the test can call a set-up for this reconciler without setting up others.
func (r *reconciler) isOwn(s setup) bool {
	canBeMade := ast.IsExported(r.name) || len(r.constructors) > 0 && r.constructors[0].fn.Name.IsExported()
	return s.fn.Name.IsExported() && (canBeMade && s.isMethod() || !s.isMethod() && len(s.reaches) == 1)
}

// functions returns the functions that main calls and that set up only this reconciler. If main calls none, and the reconciler has no
// method for it, functions returns one function: the first that the test can call, or else the first.
func (pr *program) functions(r *reconciler) (called []setup) {
	var own []setup
	for _, s := range r.setups {
		if s.isMethod() || len(s.reaches) > 1 {
			continue
		}
		if own = append(own, s); pr.isCalled(s) {
			called = append(called, s)
		}
	}
	hasMethod := slices.ContainsFunc(r.setups, func(s setup) bool { return s.isMethod() && r.isOwn(s) })
	if len(called) > 0 || len(own) == 0 || hasMethod {
		return called
	}
	if i := slices.IndexFunc(own, r.isOwn); i >= 0 {
		return own[i : i+1]
	}
	return own[:1]
}

// reconciled returns the kinds of the reconcilers that the program sets up, without duplicates.
func (pr *program) reconciled() (kinds []typeRef) {
	for _, r := range pr.reconcilers {
		setups := pr.functions(r)
		for _, made := range pr.instances(r) {
			for _, c := range made.calls {
				setups = append(setups, c.setup)
			}
		}
		var own []typeRef
		for _, s := range setups {
			own = append(own, s.primary...)
		}
		if len(own) == 0 {
			own = r.primary
		}
		for _, kind := range own {
			kinds = appendNew(kinds, kind)
		}
	}
	return kinds
}
