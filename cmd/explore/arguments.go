package main

import (
	"cmp"
	"go/ast"
	"strings"
)

// arguments returns the code of the arguments with which the test calls a function of the module. If the type of a parameter is in byType,
// the argument follows from the type. Otherwise it is the argument of the operator's main package. If the test cannot use that, it is a
// zero value that the user has to fill in. It returns false if the test cannot name a type.
func (g *generator) arguments(fn place, as call) (string, bool) {
	var args []string
	params := parameters(fn.fn.Type.Params)
	isVariadic := len(params) > 0 && isEllipsis(params[len(params)-1].expr)
	if isVariadic {
		params = params[:len(params)-1]
	}
	for i, param := range params {
		if code := g.filled(param.expr, fn.source); code != "" {
			args = append(args, code)
			continue
		}
		comment := param.name + ": a " + strings.Join(strings.Fields(g.m.text(fn.source, param.expr)), " ")
		if len(as.args) >= len(params) {
			code, ok := g.try(func() (string, bool) { return g.value(as.args[i], as.at) })
			if ok {
				args = append(args, code)
				continue
			}
			comment = param.name + ": " + g.m.from(as.args[i], as.at)
		}
		t, ok := g.typeCode(param.expr, fn.source)
		if !ok {
			return "", false
		}
		args = append(args, "\n"+fillIn(comment)+"\n*new("+t+")")
	}
	last := ""
	if isVariadic && len(as.args) > len(params) {
		others, ok := g.try(func() (string, bool) { return g.variadic(as.args[len(params):], as) })
		if ok {
			args = append(args, others)
		} else {
			last = "\n" + fillIn(g.m.from(as.args[len(params)], as.at)) + "\n"
		}
	}
	list := strings.Join(args, ", ")
	if list != "" && (last != "" || strings.Contains(list, "\n"+fillIn(""))) {
		last = "," + cmp.Or(last, "\n")
	}
	return list + last, true
}

func isEllipsis(e ast.Expr) bool {
	_, ok := e.(*ast.Ellipsis)
	return ok
}

// variadic returns the code of the arguments for a variadic parameter. It returns false if the test cannot use one of them.
func (g *generator) variadic(args []ast.Expr, as call) (string, bool) {
	var all []string
	for _, arg := range args {
		code, ok := g.value(arg, as.at)
		if !ok {
			return "", false
		}
		all = append(all, code)
	}
	list := strings.Join(all, ", ")
	if as.isSpread {
		list += "..."
	}
	return list, true
}
