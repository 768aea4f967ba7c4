package main

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// wireAll adds the statements of Start that set up field indexes and reconcilers, as main does.
func (g *generator) wireAll() {
	g.wireIndexes()
	wired := map[*reconciler]bool{}
	for _, s := range g.program.adders() {
		g.wireFunction(s)
		for _, r := range s.reaches {
			wired[r] = true
		}
	}
	for _, r := range g.program.reconcilers {
		if !wired[r] {
			g.wire(r)
		}
	}
}

// wireFunction adds the statements of a function that sets up several reconcilers.
func (g *generator) wireFunction(s setup) {
	var titles []string
	for _, r := range s.reaches {
		titles = append(titles, r.title())
	}
	g.statements = append(g.statements, "\n// "+strings.Join(titles, ", "))
	if code, ok := g.try(func() (string, bool) { return g.callFunction(s) }); ok {
		g.statements = append(g.statements, code)
		return
	}
	g.statements = append(g.statements, fillIn("call "+s.fn.Name.Name+" of "+g.m.position(s.fn.Pos())))
}

// wire adds the statements that set up a reconciler.
func (g *generator) wire(r *reconciler) {
	g.statements = append(g.statements, "\n// "+r.title())
	before, declared := len(g.statements), maps.Clone(g.declared)
	if !g.setUp(r) {
		g.statements, g.declared = g.statements[:before], declared
		g.statements = append(g.statements, fillIn("set up "+r.title()+" of "+g.m.position(r.at.Pos())+": no exported function was found that makes it"))
	}
}

// setUp adds the statements that add a reconciler to the manager. What it needs is declared before.
func (g *generator) setUp(r *reconciler) bool {
	chosen := g.program.chosen(r)
	if len(chosen) > 0 && !chosen[0].isMethod() {
		for _, s := range chosen {
			code, ok := g.callFunction(s)
			if !ok {
				return false
			}
			g.statements = append(g.statements, code)
		}
		return true
	}
	names, ok := g.instances(r)
	for _, name := range names {
		for _, s := range chosen {
			args, filled := g.arguments(s.fn.Type, s.file, nil, place{})
			ok = ok && filled && s.fn.Name.IsExported()
			g.statements = append(g.statements, checked(name+"."+s.fn.Name.Name+"("+args+")", s.fn.Type))
		}
		if len(chosen) == 0 {
			g.statements = append(g.statements, g.reconcileAll(r, name))
		}
	}
	return ok
}

// reconcileAll returns the statement that calls a reconciler without a set-up for all objects of its kind.
func (g *generator) reconcileAll(r *reconciler, name string) string {
	if len(r.primary) == 0 {
		return fillIn("the kind that it reconciles: p.Reconcile(&Kind{}, "+name+")") + "\n_ = " + name
	}
	kind := g.use(r.primary[0].path, r.primary[0].alias()) + "." + r.primary[0].name
	return "p.Reconcile(&" + kind + "{}, " + name + ")"
}

// callFunction returns the statement that calls a function which sets up reconcilers, or field indexes.
func (g *generator) callFunction(s setup) (string, bool) {
	given, at := g.program.call(typeRef{s.file.pkg.path, s.fn.Name.Name})
	args, ok := g.arguments(s.fn.Type, s.file, given, at)
	call := g.use(s.file.pkg.path, s.file.pkg.name) + "." + s.fn.Name.Name + "(" + args + ")"
	return checked(call, s.fn.Type), ok && s.fn.Name.IsExported()
}

// checked returns the statement of a call that may return an error.
func checked(call string, fn *ast.FuncType) string {
	if len(parameters(fn.Results)) == 0 {
		return call
	}
	return "if err := " + call + "; err != nil {\nreturn err\n}"
}

// instances declares a variable for each reconciler of the type that main makes, or one if main makes none. It returns their names.
func (g *generator) instances(r *reconciler) (names []string, ok bool) {
	literals, at := g.program.literals(typeRef{g.p.path, r.name})
	if len(literals) == 0 && r.constructor != nil && r.constructor.Name.IsExported() {
		return g.constructed(r)
	}
	if len(literals) == 0 {
		literals = []*ast.CompositeLit{nil}
	}
	for _, literal := range literals {
		fields, isStruct := g.fields(r.name, literal, at)
		if !ast.IsExported(r.name) || !isStruct {
			return nil, false
		}
		t := "&" + g.use(g.p.path, g.p.name) + "." + r.name + "{"
		if len(fields) > 0 {
			t += "\n" + strings.Join(fields, "\n") + "\n"
		}
		name := g.unique(lowerFirst(r.name))
		g.statements = append(g.statements, name+" := "+t+"}")
		names = append(names, name)
	}
	return names, true
}

// constructed declares a variable for each call of the reconciler's constructor in main, or one if there is none.
func (g *generator) constructed(r *reconciler) (names []string, ok bool) {
	calls, at := g.program.calls(typeRef{g.p.path, r.constructor.Name.Name})
	if len(calls) == 0 {
		calls = [][]ast.Expr{nil}
	}
	for _, given := range calls {
		args, filled := g.arguments(r.constructor.Type, r.constructed, given, at)
		results := parameters(r.constructor.Type.Results)
		if !filled || len(results) > 2 {
			return nil, false
		}
		call := g.use(g.p.path, g.p.name) + "." + r.constructor.Name.Name + "(" + args + ")"
		name := g.unique(lowerFirst(r.name))
		names = append(names, name)
		if len(results) == 1 {
			g.statements = append(g.statements, name+" := "+call)
			continue
		}
		g.statements = append(g.statements, name+", err := "+call, "if err != nil {\nreturn err\n}")
	}
	return names, true
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

// schemes returns the packages whose types are added to the scheme for a package of reconcilers: the packages that main adds, and the packages of the kinds.
func (m *module) schemes(p *pkg) (added []typeRef) {
	const builtIn = "k8s.io/client-go/kubernetes/scheme"
	add := func(t typeRef) {
		if t.path != builtIn && t.path != "" && m.mayImport(p, t.path) && !slices.ContainsFunc(added, func(a typeRef) bool { return a.path == t.path }) {
			added = append(added, t)
		}
	}
	for _, main := range m.sources() {
		if main.name != "main" {
			continue
		}
		for _, fun := range main.addedToScheme() {
			add(fun)
		}
	}
	for _, kind := range p.kinds() {
		if strings.HasPrefix(kind.path, "k8s.io/api/") || slices.ContainsFunc(added, func(a typeRef) bool { return a.path == kind.path }) {
			continue
		}
		if defined := m.parse(m.folderOf(kind.path)); defined != nil && defined.declares("AddToScheme") {
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
