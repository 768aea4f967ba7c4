package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// place is a position in the code: a file, and the function in it.
type place struct {
	*source
	fn *ast.FuncDecl // nil at the top level
}

// variable is a local variable in a function of the operator's main package.
type variable struct {
	fn   *ast.FuncDecl
	name string
}

// safe are packages outside of the module whose functions the test may call in the same way as the operator's main package.
var safe = []string{"time", "k8s.io/utils/ptr", "k8s.io/utils/clock", "errors", "strings"}

// value returns code for the test with the same value as an expression of the operator's main package. It returns false if the test cannot
// have this value. It may add statements that declare variables.
func (g *generator) value(e ast.Expr, at place) (code string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value, true
	case *ast.ParenExpr:
		return g.value(e.X, at)
	case *ast.BinaryExpr:
		x, ok := g.value(e.X, at)
		if !ok {
			return "", false
		}
		y, ok := g.value(e.Y, at)
		return x + " " + e.Op.String() + " " + y, ok
	case *ast.UnaryExpr:
		x, ok := g.value(e.X, at)
		return e.Op.String() + x, ok && e.Op != token.ARROW
	case *ast.CompositeLit:
		return g.literal(e, at)
	case *ast.Ident:
		return g.variable(e.Name, at)
	case *ast.SelectorExpr:
		return g.selected(e, at)
	case *ast.CallExpr:
		return g.call(e, at)
	}
	return "", false
}

func (g *generator) selected(e *ast.SelectorExpr, at place) (string, bool) {
	x, ok := e.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	imported := at.imported(x.Name)
	switch {
	case imported == "" || !g.m.mayImport(g.p, imported):
		return "", false
	case imported == controllerRuntime+"/pkg/metrics": // a second process would register metrics there again
		return g.names.use("github.com/prometheus/client_golang/prometheus", "prometheus") + ".NewRegistry()", e.Sel.Name == "Registry"
	case imported == "os" || imported == "flag":
		return "", false
	}
	return g.names.use(imported, x.Name) + "." + e.Sel.Name, true
}

// literal returns the code of a composite literal. It leaves out elements that the test cannot use.
func (g *generator) literal(e *ast.CompositeLit, at place) (string, bool) {
	t, ok := g.typeCode(e.Type, at.source)
	if !ok {
		return "", false
	}
	var elements []string
	for _, element := range e.Elts {
		key, value := "", element
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			name, isField := kv.Key.(*ast.Ident)
			if !isField {
				return "", false
			}
			key, value = name.Name+": ", kv.Value
		}
		code, ok := g.try(func() (string, bool) { return g.value(value, at) })
		switch {
		case ok:
			elements = append(elements, key+code+",")
		case key == "":
			return "", false
		default:
			elements = append(elements, fillIn(key+g.m.from(value, at)))
		}
	}
	if len(elements) == 0 {
		return t + "{}", true
	}
	return t + "{\n" + strings.Join(elements, "\n") + "\n}", true
}

// variable returns the code for a variable or a constant of the operator's main package. If the variable is made from values that Start
// has, variable also adds the statement that declares it in Start. Otherwise it returns false.
func (g *generator) variable(name string, at place) (string, bool) {
	if declared, ok := g.declared[variable{at.fn, name}]; ok {
		return declared, true
	}
	if types.Universe.Lookup(name) != nil && !ast.IsExported(name) {
		return name, true
	}
	if constant := at.pkg.constant(name); constant != "" {
		return constant, true
	}
	define := assigned(at.fn, name)
	if define == nil || len(define.Lhs) > 2 {
		return "", false
	}
	code, ok := g.value(define.Rhs[0], at)
	if !ok {
		return "", false
	}
	own := g.names.unique(name)
	g.declared[variable{at.fn, name}] = own
	if len(define.Lhs) == 2 {
		g.statements = append(g.statements, own+", err := "+code, "if err != nil {\nreturn err\n}")
	} else {
		g.statements = append(g.statements, own+" := "+code)
	}
	return own, true
}

// assigned returns the statement that declares the variable with this name. It returns nil if the variable is set more than once, or if its
// value depends on a variable of the same name.
func assigned(fn *ast.FuncDecl, name string) (found *ast.AssignStmt) {
	if fn == nil {
		return nil
	}
	count := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assign.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name == name {
				count++
				second, _ := assign.Lhs[len(assign.Lhs)-1].(*ast.Ident)
				if i == 0 && len(assign.Rhs) == 1 && assign.Tok == token.DEFINE && (len(assign.Lhs) == 1 || second != nil && second.Name == "err") {
					found = assign
				}
			}
		}
		return true
	})
	if count != 1 || found != nil && isValueIn(found.Rhs[0], name) {
		return nil
	}
	return found
}

// isValueIn reports whether an expression uses the variable with this name. A field, a method or a package of this name is ignored.
func isValueIn(e ast.Expr, name string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			_, isIdent := n.X.(*ast.Ident)
			return !isIdent
		case *ast.KeyValueExpr:
			found = found || isValueIn(n.Value, name)
			return false
		case *ast.Ident:
			found = found || n.Name == name
		}
		return !found
	})
	return found
}

// constant returns the literal value of the package's constant with this name, "" if there is none.
func (p *pkg) constant(name string) (value string) {
	for _, s := range p.files {
		for _, decl := range s.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				spec, ok := spec.(*ast.ValueSpec)
				if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || spec.Names[0].Name != name {
					continue
				}
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
					value = literal.Value
				}
			}
		}
	}
	return value
}

// call returns the code of a call in the test. It must be a call of the manager, of a function of the module, or of a function in the safe
// packages.
func (g *generator) call(e *ast.CallExpr, at place) (string, bool) {
	fun, ok := e.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	x, ok := fun.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	imported := at.imported(x.Name)
	if imported == "" {
		return g.managerCall(fun.Sel.Name, e.Args, at)
	}
	if !g.m.mayImport(g.p, imported) {
		return "", false
	}
	if fn, s := g.m.graph.functionOf(imported, declaration{"", fun.Sel.Name}); fn != nil {
		args, ok := g.arguments(place{s, fn}, callOf(e, at))
		return g.names.use(imported, x.Name) + "." + fun.Sel.Name + "(" + args + ")", ok
	}
	if !slices.Contains(safe, imported) {
		return "", false
	}
	args, ok := g.variadic(e.Args, callOf(e, at))
	return g.names.use(imported, x.Name) + "." + fun.Sel.Name + "(" + args + ")", ok
}

// managerCall returns the code of a call of one of the manager's getters.
func (g *generator) managerCall(method string, args []ast.Expr, at place) (string, bool) {
	switch method {
	case "GetClient", "GetScheme", "GetAPIReader", "GetConfig", "GetCache", "GetFieldIndexer", "GetHTTPClient", "GetLogger", "GetRESTMapper":
		return "mgr." + method + "()", len(args) == 0
	case "GetEventRecorderFor", "GetEventRecorder":
		if len(args) == 1 {
			name, ok := g.value(args[0], at)
			return "mgr." + method + "(" + name + ")", ok
		}
	}
	return "", false
}

// try calls render. If render fails, try removes the statements and declarations that it has added.
func (g *generator) try(render func() (string, bool)) (string, bool) {
	statements, declared := len(g.statements), maps.Clone(g.declared)
	code, ok := render()
	if !ok {
		g.statements, g.declared = g.statements[:statements], declared
	}
	return code, ok
}

// mayImport reports whether a test in package beside may import another package.
func (m *module) mayImport(beside *pkg, imported string) bool {
	if p := m.packageOf(imported); p != nil && p.name == "main" && p != beside {
		return false
	}
	i := strings.LastIndex("/"+imported+"/", "/internal/")
	return i < 1 || strings.HasPrefix(beside.path+"/", imported[:i-1]+"/")
}

// from returns the text of an expression and its position, for a comment in the test.
func (m *module) from(e ast.Expr, at place) string {
	text := strings.Join(strings.Fields(m.text(at.source, e)), " ")
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return text + " in " + m.position(e.Pos())
}

func fillIn(text string) string { return "// FILL IN " + text }
