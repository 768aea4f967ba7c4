package main

import (
	"go/ast"
	"slices"
)

// instance is a value of a reconciler's type that the operator's main package creates, and the set-up methods that it calls on the value.
type instance struct {
	node        ast.Node // the node that creates the value; nil if it cannot be found
	from        call     // the call of the constructor, or the position of another node
	literal     *ast.CompositeLit
	constructor place
	calls       []methodCall
}

// methodCall is a call of a method that sets up a reconciler.
type methodCall struct {
	setup
	call
	node ast.Node // the call
	made ast.Node // the node that creates the value on which the method is called; nil if it cannot be found
}

// made returns the values of a reconciler's type that a function of the operator's main package creates: by a literal, by new, by a
// variable or by a constructor. Only the first function that creates such values counts.
func (pr *program) made(r *reconciler) (all []*instance) {
	if known, ok := pr.madeOf[r]; ok || r.name == "" {
		return known
	}
	defer func() { pr.madeOf[r] = all }()
	counted, own := oneFunction{}, typeRef{pr.p.path, r.name}
	pr.visit(func(n ast.Node, at place) bool {
		made := &instance{node: n, from: call{at: at}}
		switch n := n.(type) {
		case *ast.CompositeLit:
			if n.Type == nil || at.typeOf(n.Type) != own {
				return false
			}
			made.literal = n
		case *ast.ValueSpec:
			if _, isPointer := n.Type.(*ast.StarExpr); isPointer || n.Type == nil || len(n.Values) > 0 || at.typeOf(n.Type) != own {
				return false
			}
		case *ast.CallExpr:
			i := slices.IndexFunc(r.constructors, func(c place) bool { return at.typeOf(n.Fun) == typeRef{pr.p.path, c.fn.Name.Name} })
			if i < 0 && at.typeOf(n) != own { // new(T)
				return false
			}
			if i >= 0 {
				made.constructor, made.from = r.constructors[i], callOf(n, at)
			}
		default:
			return false
		}
		if counted.add(n, at) {
			all = append(all, made)
		}
		return false
	})
	return all
}

// methodCalls returns the calls of a reconciler's set-up methods. typed are the calls on values of the reconciler's type. others are the
// calls on values whose type cannot be found.
func (pr *program) methodCalls(r *reconciler) (typed, others []methodCall) {
	if known, ok := pr.callsOf[r]; ok {
		return known[0], known[1]
	}
	defer func() { pr.callsOf[r] = [2][]methodCall{typed, others} }()
	pr.visit(func(n ast.Node, at place) bool {
		called, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		fun, ok := called.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		i := slices.IndexFunc(r.setups, func(s setup) bool { return s.isMethod() && s.fn.Name.Name == fun.Sel.Name })
		if i < 0 {
			return false
		}
		t, made := pr.m.graph.valueOf(fun.X, at)
		c := methodCall{setup: r.setups[i], call: callOf(called, at), node: n, made: made}
		switch t {
		case typeRef{pr.p.path, r.name}:
			typed = append(typed, c)
		case typeRef{}:
			others = append(others, c)
		}
		return false
	})
	return typed, others
}

// instances returns the values of a reconciler's type that are set up by methods, or that have no set-up. If main creates no value, and no
// function sets up the reconciler, it returns one instance without a node.
func (pr *program) instances(r *reconciler) (found []instance) {
	all, isMade := pr.made(r), len(pr.made(r)) > 0
	if !isMade {
		all = []*instance{{}}
	}
	typed, others := pr.methodCalls(r)
	var apart []methodCall // calls on values whose creation cannot be found
	calls := map[ast.Node][]methodCall{}
	for _, c := range typed {
		if isMade && slices.ContainsFunc(all, func(v *instance) bool { return v.node == c.made }) {
			calls[c.made] = append(calls[c.made], c)
		} else {
			apart = append(apart, c)
		}
	}
	hasFunction := len(pr.functions(r)) > 0
	for _, v := range all {
		made := *v
		switch {
		case len(calls[v.node]) > 0:
			made.calls = calls[v.node]
		case len(apart) > 0:
			made.calls = onePerMethod(apart)
		case hasFunction:
			continue
		case len(others) > 0:
			made.calls = onePerMethod(others)
		case len(calls) > 0:
			continue
		case len(r.setups) > 0 && r.setups[0].isMethod():
			made.calls = []methodCall{{setup: r.setups[0]}}
		}
		made.calls = slices.DeleteFunc(slices.Clone(made.calls), func(c methodCall) bool {
			return c.at.fn != nil && c.at.fn == made.calls[0].at.fn && excludes(c.at.fn, made.calls[0].node, c.node)
		})
		found = append(found, made)
	}
	return found
}

// onePerMethod returns the first call of each method.
func onePerMethod(calls []methodCall) (first []methodCall) {
	for _, c := range calls {
		if !slices.ContainsFunc(first, func(other methodCall) bool { return other.fn == c.fn }) {
			first = append(first, c)
		}
	}
	return first
}
