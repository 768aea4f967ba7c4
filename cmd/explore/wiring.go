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
	wired := g.program.setUpByOthers()
	for _, s := range g.program.adders() {
		g.wireFunction(s)
		wired = append(wired, s.reaches...)
	}
	for _, r := range g.program.reconcilers {
		if !slices.Contains(wired, r) {
			g.wire(r)
		}
	}
}

// wireFunction adds the statements that call, once, a function which sets up several reconcilers.
func (g *generator) wireFunction(s setup) {
	var titles []string
	for _, r := range s.reaches {
		titles = append(titles, r.title())
	}
	g.statements = append(g.statements, "\n// "+strings.Join(titles, ", "))
	calls := append(g.program.calls(s.name()), call{})
	if code, ok := g.try(func() (string, bool) { return g.callFunction(s.place, calls[0]) }); ok {
		g.statements = append(g.statements, code)
		return
	}
	g.statements = append(g.statements, fillIn("call "+s.fn.Name.Name+" of "+g.m.position(s.fn.Pos())))
}

// wire adds the statements that set up a reconciler.
func (g *generator) wire(r *reconciler) {
	g.statements = append(g.statements, "\n// "+r.title())
	before, declared := len(g.statements), maps.Clone(g.declared)
	if problem := g.setUp(r); problem != "" {
		g.statements, g.declared = g.statements[:before], declared
		g.statements = append(g.statements, fillIn("set up "+r.title()+" of "+g.m.position(r.at.Pos())+": "+problem))
	}
}

// setUp adds the statements that add a reconciler to the manager. They call functions. Then they declare values of the reconciler's type
// and call their methods. If that is not possible, setUp returns the reason.
func (g *generator) setUp(r *reconciler) (problem string) {
	functions, instances := g.program.functions(r), g.program.instances(r)
	for _, s := range functions {
		calls := g.program.calls(s.name())
		if len(calls) == 0 {
			calls = []call{{}}
		}
		for _, c := range calls {
			code, ok := g.callFunction(s.place, c)
			if !ok {
				return cannotCall(s)
			}
			if !slices.Contains(g.statements, code) {
				g.statements = append(g.statements, code)
			}
		}
	}
	var names []string
	for _, v := range instances {
		name, ok := g.declare(r, v)
		if !ok {
			return "no exported function was found that makes it"
		}
		names = append(names, name)
	}
	for i, v := range instances {
		for _, c := range v.calls {
			args, ok := g.arguments(c.place, c.call)
			if !ok || !c.fn.Name.IsExported() {
				return cannotCall(c.setup)
			}
			g.statements = append(g.statements, checked(names[i]+"."+c.fn.Name.Name+"("+args+")", c.fn.Type))
		}
		if len(v.calls) == 0 {
			g.statements = append(g.statements, g.reconcileAll(r, names[i]))
		}
	}
	return ""
}

// cannotCall returns the reason why the test does not call a set-up.
func cannotCall(s setup) string {
	if !s.fn.Name.IsExported() {
		return s.fn.Name.Name + " is not exported"
	}
	return "the test cannot write the type of an argument of " + s.fn.Name.Name
}

// reconcileAll returns the statement that registers a reconciler without a set-up. The reconciler is then called for all objects of its
// kind.
func (g *generator) reconcileAll(r *reconciler, name string) string {
	if len(r.primary) == 0 {
		return fillIn("the kind that it reconciles: p.Reconcile(&Kind{}, "+name+")") + "\n_ = " + name
	}
	kind := g.names.use(r.primary[0].path, r.primary[0].alias()) + "." + r.primary[0].name
	return "p.Reconcile(&" + kind + "{}, " + name + ")"
}

// callFunction returns the statement that calls a function which sets up reconcilers or field indexes. It returns false if the function is
// not exported, or if an argument has no code.
func (g *generator) callFunction(fn place, as call) (string, bool) {
	args, ok := g.arguments(fn, as)
	name := g.names.use(fn.pkg.path, fn.pkg.name) + "." + fn.fn.Name.Name
	return checked(name+"("+args+")", fn.fn.Type), ok && fn.fn.Name.IsExported()
}

// checked returns the statement of a call. If the last result of the function is an error, the statement returns it.
func checked(call string, fn *ast.FuncType) string {
	results := parameters(fn.Results)
	last := len(results) - 1
	if last < 0 || !isError(results[last].expr) {
		return call
	}
	return "if " + strings.Repeat("_, ", last) + "err := " + call + "; err != nil {\nreturn err\n}"
}

// declare adds the statement that declares a variable for a reconciler, and returns the variable's name.
func (g *generator) declare(r *reconciler, v instance) (name string, ok bool) {
	if v.node == nil && len(r.constructors) > 0 {
		v.constructor = r.constructors[0]
	}
	if fn := v.constructor.fn; fn != nil && fn.Name.IsExported() {
		return g.constructed(r, v)
	}
	fields, isStruct := g.fields(r.name, v.literal, v.from.at)
	if !ast.IsExported(r.name) || !isStruct {
		return "", false
	}
	t := "&" + g.names.use(g.p.path, g.p.name) + "." + r.name + "{"
	if len(fields) > 0 {
		t += "\n" + strings.Join(fields, "\n") + "\n"
	}
	name = g.names.unique(lowerFirst(r.name))
	g.statements = append(g.statements, name+" := "+t+"}")
	return name, true
}

// constructed adds the statement that declares a variable for a reconciler made by a constructor, and returns the variable's name.
func (g *generator) constructed(r *reconciler, v instance) (name string, ok bool) {
	fn := v.constructor.fn
	args, filled := g.arguments(v.constructor, v.from)
	results := parameters(fn.Type.Results)
	if !filled || len(results) > 2 {
		return "", false
	}
	call := g.names.use(g.p.path, g.p.name) + "." + fn.Name.Name + "(" + args + ")"
	name = g.names.unique(lowerFirst(r.name))
	if len(results) == 1 {
		g.statements = append(g.statements, name+" := "+call)
		return name, true
	}
	g.statements = append(g.statements, name+", err := "+call, "if err != nil {\nreturn err\n}")
	return name, true
}

// fields returns the code of the fields in the literal of a reconciler. A field has the value of the literal in main. If the test cannot
// use that, its value follows from its type. Otherwise the code is a comment about what to fill in. A field that main's literal does not
// have is left out. fields returns false if the type is not a struct.
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

// field returns the code of one field. If main's literal does not have the field, it returns nothing.
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

// schemes returns the functions that add types to the scheme: the functions that main packages call, and AddToScheme in the packages of the
// reconciled and watched kinds.
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

// addedToScheme returns the functions of other packages that the package calls to add types to a scheme.
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
