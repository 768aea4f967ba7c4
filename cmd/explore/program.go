package main

import (
	"go/ast"
	"slices"
)

// program is what main does for a package of reconcilers. Its code is one main package with the packages of the module that it imports, or
// the whole module if the field main is nil.
type program struct {
	m           *module
	p           *pkg
	main        *pkg          // nil: all
	reconcilers []*reconciler // the reconcilers that it sets up

	// What has been found already.
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

// visit calls see for all nodes outside of the package of the reconcilers, main packages first, until see returns true. A main package with
// reconcilers is visited too.
func (pr *program) visit(see func(ast.Node, place) bool) {
	done := false
	for _, p := range pr.sources() {
		if p == pr.p && p.name != "main" {
			continue
		}
		for _, s := range p.files {
			for _, decl := range s.Decls {
				fn, _ := decl.(*ast.FuncDecl) // nil for variables
				ast.Inspect(decl, func(n ast.Node) bool {
					done = done || n != nil && see(n, place{s, fn})
					return !done
				})
			}
		}
	}
}

// oneFunction collects nodes of one function of main: the function of the first node that is added. If an if or a switch statement has
// several branches, only the branch of the first node counts.
type oneFunction struct {
	first ast.Node
	at    place
}

// add reports whether a node counts.
func (o *oneFunction) add(n ast.Node, at place) bool {
	if o.first == nil {
		o.first, o.at = n, at
		return true
	}
	return at.fn != nil && o.at.fn == at.fn && !excludes(at.fn, o.first, n)
}

// excludes reports whether only one of two nodes of a function runs. It is true if they are in different branches of a statement, or if one
// is in a branch that returns and the other one follows.
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

// ends reports whether a block returns from its function.
func ends(block *ast.BlockStmt) bool {
	if len(block.List) == 0 {
		return false
	}
	_, ok := block.List[len(block.List)-1].(*ast.ReturnStmt)
	return ok
}

// call is a call in main. If main names the function without calling it, it has no arguments.
type call struct {
	args     []ast.Expr
	isSpread bool // the last argument has three dots
	at       place
}

func callOf(e *ast.CallExpr, at place) call { return call{e.Args, e.Ellipsis.IsValid(), at} }

// calls returns the calls of a function in one function of main: the first that calls it. It returns none if main does not call or name it.
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

// setsUp reports whether main makes a reconciler, or calls a function or a method that sets it up.
func (pr *program) setsUp(r *reconciler) bool {
	if slices.ContainsFunc(r.setups, func(s setup) bool { return !s.isMethod() && pr.isCalled(s) }) || len(pr.made(r)) > 0 {
		return true
	}
	typed, _ := pr.methodCalls(r)
	return len(typed) > 0
}

// adders returns the functions that set up several reconcilers at once. An exported function is returned if main calls it, or if one of its
// reconcilers cannot be set up otherwise. No two of the functions set up the same reconciler.
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

// isOwn reports whether a set-up can be called for the reconciler alone.
func (r *reconciler) isOwn(s setup) bool {
	canBeMade := ast.IsExported(r.name) || len(r.constructors) > 0 && r.constructors[0].fn.Name.IsExported()
	return s.fn.Name.IsExported() && (canBeMade && s.isMethod() || !s.isMethod() && len(s.reaches) == 1)
}

// functions returns the functions that main calls and that set up this reconciler alone. If main calls none, and no method of the
// reconciler can set it up, it returns the first such function that the test can call, or else the first one.
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

// reconciled returns the kinds for which main sets up a reconciler, without duplicates.
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
