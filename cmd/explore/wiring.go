package main

import (
	"go/ast"
	"slices"
	"strings"
)

// wire adds the statements of Start that set up a reconciler, as main does.
func (g *generator) wire(r *reconciler) {
	g.statements = append(g.statements, "\n// "+r.name)
	if code, ok := g.try(func() (string, bool) { return g.setUp(r) }); ok {
		g.statements = append(g.statements, code)
		return
	}
	g.statements = append(g.statements, fillIn("set up "+r.name+" of "+g.m.position(r.at.Pos())+": no exported function was found that makes it"))
}

// setUp returns the statement that adds a reconciler to the manager. What it needs is declared before.
func (g *generator) setUp(r *reconciler) (string, bool) {
	if r.setup != nil && r.setup.Recv == nil {
		given, at := g.callInMain(typeRef{g.p.path, r.setup.Name.Name})
		args, ok := g.arguments(r.setup.Type, r.setupFile, given, at)
		call := g.use(g.p.path, g.p.name) + "." + r.setup.Name.Name + "(" + args + ")"
		return checked(call, r.setup.Type), ok && r.setup.Name.IsExported()
	}
	name, ok := g.instance(r)
	if !ok {
		return "", false
	}
	if r.setup != nil {
		args, ok := g.arguments(r.setup.Type, r.setupFile, nil, place{})
		return checked(name+"."+r.setup.Name.Name+"("+args+")", r.setup.Type), ok && r.setup.Name.IsExported()
	}
	if len(r.primary) == 0 {
		return fillIn("the kind that it reconciles: p.Reconcile(&Kind{}, "+name+")") + "\n_ = " + name, true
	}
	kind := g.use(r.primary[0].path, r.primary[0].alias()) + "." + r.primary[0].name
	return "p.Reconcile(&" + kind + "{}, " + name + ")", true
}

// checked returns the statement of a call that may return an error.
func checked(call string, fn *ast.FuncType) string {
	if len(parameters(fn.Results)) == 0 {
		return call
	}
	return "if err := " + call + "; err != nil {\nreturn err\n}"
}

// instance declares a variable with the reconciler, and returns its name.
func (g *generator) instance(r *reconciler) (string, bool) {
	literal, at := g.literalInMain(typeRef{g.p.path, r.name})
	if literal == nil && r.constructor != nil && r.constructor.Name.IsExported() {
		given, at := g.callInMain(typeRef{g.p.path, r.constructor.Name.Name})
		args, ok := g.arguments(r.constructor.Type, r.constructed, given, at)
		call := g.use(g.p.path, g.p.name) + "." + r.constructor.Name.Name + "(" + args + ")"
		switch results := parameters(r.constructor.Type.Results); {
		case !ok || len(results) > 2:
			return "", false
		case len(results) == 1:
			name := g.unique(lowerFirst(r.name))
			g.statements = append(g.statements, name+" := "+call)
			return name, true
		default:
			name := g.unique(lowerFirst(r.name))
			g.statements = append(g.statements, name+", err := "+call, "if err != nil {\nreturn err\n}")
			return name, true
		}
	}
	fields, isStruct := g.fields(r.name, literal, at)
	if !ast.IsExported(r.name) || !isStruct {
		return "", false
	}
	name := g.unique(lowerFirst(r.name))
	t := "&" + g.use(g.p.path, g.p.name) + "." + r.name + "{"
	if len(fields) > 0 {
		t += "\n" + strings.Join(fields, "\n") + "\n"
	}
	g.statements = append(g.statements, name+" := "+t+"}")
	return name, true
}

// fields returns the elements of the literal of a reconciler: as main has them, else by their types, else a comment.
func (g *generator) fields(name string, literal *ast.CompositeLit, at place) (elements []string, isStruct bool) {
	st, s := g.p.structOf(name)
	if st == nil {
		return nil, false
	}
	given := map[string]ast.Expr{}
	if literal != nil {
		for _, element := range literal.Elts {
			if kv, ok := element.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok {
					given[key.Name] = kv.Value
				}
			}
		}
	}
	for _, field := range st.Fields.List {
		names := field.Names
		if len(names) == 0 {
			names = []*ast.Ident{ast.NewIdent(s.typeOf(field.Type).name)}
		}
		for _, id := range names {
			if id.IsExported() {
				elements = append(elements, g.field(id.Name, field.Type, s, given[id.Name], at, literal != nil)...)
			}
		}
	}
	return elements, true
}

// field returns the element of one field; none if main leaves it out.
func (g *generator) field(name string, t ast.Expr, s *source, given ast.Expr, at place, isGiven bool) []string {
	switch {
	case given != nil:
		if code, ok := g.try(func() (string, bool) { return g.value(given, at) }); ok {
			return []string{name + ": " + code + ","}
		}
	case isGiven:
		return nil
	}
	if code := g.filled(t, s); code != "" {
		return []string{name + ": " + code + ","}
	}
	if given != nil {
		return []string{fillIn(name + ": " + g.m.from(given, at))}
	}
	return []string{fillIn(name + ": a " + strings.Join(strings.Fields(g.m.text(s, t)), " "))}
}

// literalInMain returns the literal by which main makes a value of a type; nil if there is none.
func (g *generator) literalInMain(t typeRef) (found *ast.CompositeLit, at place) {
	g.inMain(func(n ast.Node, where place) bool {
		literal, ok := n.(*ast.CompositeLit)
		if ok && literal.Type != nil && where.typeOf(literal.Type) == t {
			found, at = literal, where
		}
		return found != nil
	})
	return found, at
}

// callInMain returns the arguments with which main calls a function of the package; none if it does not.
func (g *generator) callInMain(fn typeRef) (args []ast.Expr, at place) {
	g.inMain(func(n ast.Node, where place) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && where.typeOf(call.Fun) == fn {
			args, at = call.Args, where
		}
		return args != nil
	})
	return args, at
}

// inMain calls visit for all nodes of functions outside of the package, main packages first, until it returns true.
func (g *generator) inMain(visit func(ast.Node, place) bool) {
	done := false
	for _, p := range g.m.sources() {
		if p == g.p && p.name != "main" {
			continue
		}
		p.functions(func(s *source, fn *ast.FuncDecl) {
			if done || fn.Body == nil {
				return
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				done = done || n != nil && visit(n, place{s, fn})
				return !done
			})
		})
	}
}

// schemes returns the packages whose types are added to the scheme: the packages that main adds, and the packages of the kinds.
func (g *generator) schemes() (added []typeRef) {
	const builtIn = "k8s.io/client-go/kubernetes/scheme"
	add := func(t typeRef) {
		if t.path != builtIn && t.path != "" && g.canImport(t.path) && !slices.ContainsFunc(added, func(a typeRef) bool { return a.path == t.path }) {
			added = append(added, t)
		}
	}
	for _, p := range g.m.sources() {
		if p.name != "main" {
			continue
		}
		for _, fun := range p.addedToScheme() {
			add(fun)
		}
	}
	for _, kind := range g.kinds() {
		if strings.HasPrefix(kind.path, "k8s.io/api/") || slices.ContainsFunc(added, func(a typeRef) bool { return a.path == kind.path }) {
			continue
		}
		if p := g.m.parse(g.m.folderOf(kind.path)); p != nil && p.declares("AddToScheme") {
			add(typeRef{kind.path, "AddToScheme"})
		}
	}
	return added
}

// addedToScheme returns the functions of other packages that a package calls to add types to its scheme.
func (p *pkg) addedToScheme() (added []typeRef) {
	for _, s := range p.files {
		ast.Inspect(s.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if fun := s.typeOf(call.Fun); fun.path != p.path && (fun.name == "AddToScheme" || fun.name == "Install") {
					added = append(added, fun)
				}
			}
			return true
		})
	}
	return added
}

// declares reports whether a package has a function or a variable of this name.
func (p *pkg) declares(name string) bool {
	return slices.ContainsFunc(p.files, func(s *source) bool {
		return slices.ContainsFunc(s.Decls, func(decl ast.Decl) bool {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				return decl.Recv == nil && decl.Name.Name == name
			case *ast.GenDecl:
				return slices.ContainsFunc(decl.Specs, func(spec ast.Spec) bool {
					v, ok := spec.(*ast.ValueSpec)
					return ok && slices.ContainsFunc(v.Names, func(id *ast.Ident) bool { return id.Name == name })
				})
			}
			return false
		})
	})
}
