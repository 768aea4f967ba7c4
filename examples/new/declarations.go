package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// findAlias finds the name under which the example imports the package of its API.
func (r *renaming) findAlias(files []*goFile) {
	for _, f := range files {
		for local, imported := range f.imports {
			if imported == r.from.packages+"/api/"+r.from.version {
				r.from.alias = local
			}
		}
	}
}

// declarations are the names with the kind in them that an example declares, with what they become.
type declarations struct {
	// inPackage are those outside of any function, by package path, and inside of functions.
	inPackage map[string]map[string]string
	local     map[string]string
	// members are fields and methods.
	members map[string]string
	// types are the types of the API as the copy names them, in the order in which they are declared.
	types []string
}

// declare finds what the files of an example declare, and stores it in the renaming. It returns an error if a new name is already
// used for something else.
func (r *renaming) declare(files []*goFile) (*declarations, error) {
	d := &declarations{inPackage: map[string]map[string]string{}, local: map[string]string{}, members: map[string]string{}}
	used := map[string]bool{}
	for _, f := range files {
		r.declareIn(f, d, used)
	}
	d.types = r.declaredTypes(files, d)
	for name := range d.local { // an import that has the name of a variable is not renamed
		if slices.ContainsFunc(files, func(f *goFile) bool { imported, ok := f.imports[name]; return ok && !r.isOwn(imported) }) {
			delete(d.local, name)
		}
	}
	if err := r.setWords(d, used); err != nil {
		return nil, err
	}
	for _, alias := range []string{r.to.alias, r.to.lower + r.to.version, "api" + r.to.version} {
		if r.to.alias = alias; !used[alias] || alias == r.from.alias {
			return d, nil
		}
	}
	return d, nil
}

// declareIn adds what a file declares, and the names that it uses.
func (r *renaming) declareIn(f *goFile, d *declarations, used map[string]bool) {
	folder := modulePath + "/" + f.folder()
	if d.inPackage[folder] == nil {
		d.inPackage[folder] = map[string]string{}
	}
	add := func(to map[string]string, name string) {
		renamed := r.identifier(name)
		switch {
		case renamed == name:
		case name == r.from.kind && !r.isAPI(f.folder()):
			r.kept = true
		default:
			to[name] = renamed
		}
	}
	for name := range topLevel(f.syntax) {
		add(d.inPackage[folder], name)
	}
	for name := range f.imports {
		used[name] = true
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok {
			used[ident.Name] = true
		}
		d.addNode(n, add)
		return true
	})
}

// addNode adds the names that a node declares below the top level.
func (d *declarations) addNode(n ast.Node, add func(map[string]string, string)) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv != nil {
			add(d.members, n.Name.Name)
		}
	case *ast.StructType:
		addFields(n.Fields, d.members, add)
	case *ast.InterfaceType:
		addFields(n.Methods, d.members, add)
	case *ast.FuncType:
		addFields(n.Params, d.local, add)
		addFields(n.Results, d.local, add)
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			for _, left := range n.Lhs {
				addIdent(left, d.local, add)
			}
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			addIdent(n.Key, d.local, add)
			addIdent(n.Value, d.local, add)
		}
	case *ast.ValueSpec:
		for _, name := range n.Names {
			add(d.local, name.Name)
		}
	}
}

// setWords stores the words that sentences have in place of the declared names. It returns an error if a new name is already used.
func (r *renaming) setWords(d *declarations, used map[string]bool) error {
	r.words = map[string]string{}
	all := []map[string]string{d.local, d.members}
	for _, declared := range d.inPackage {
		all = append(all, declared)
	}
	for _, declared := range all {
		for name, renamed := range declared {
			if used[renamed] {
				return fmt.Errorf("-kind %s: choose another one, since the code of example %s uses the name %s for something else",
					r.to.kind, r.from.lower, renamed)
			}
			if name != r.from.lower && name != r.from.plural { // which are ordinary words in sentences
				r.words[name] = renamed
			}
		}
	}
	return nil
}

func addFields(fields *ast.FieldList, to map[string]string, add func(map[string]string, string)) {
	if fields == nil {
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			add(to, name.Name)
		}
	}
}

func addIdent(e ast.Expr, to map[string]string, add func(map[string]string, string)) {
	if ident, ok := e.(*ast.Ident); ok {
		add(to, ident.Name)
	}
}

// leftovers returns an error if a file of the copy has a name of the example that should have been renamed.
func (r *renaming) leftovers(files map[string][]byte) error {
	old := map[string]bool{r.from.packages: true, r.from.shared: true, r.from.alias: true, r.from.sample(): true, r.from.group: true}
	for name := range r.words {
		old[name] = true
	}
	for name := range old {
		if strings.Contains(r.to.group, name) || name == r.to.alias || name == r.to.sample() || name == r.from.kind && r.kept {
			delete(old, name)
		}
	}
	for name := range old {
		pattern := regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9])`)
		for file, text := range files {
			if strings.HasPrefix(file, "internal/") && !strings.Contains(name, "/") {
				continue
			}
			if bytes.Contains(text, []byte(name)) && pattern.Match(text) {
				return fmt.Errorf("%s still has the name %s of example %s; please report this as a bug", file, name, r.from.lower)
			}
		}
	}
	return nil
}

// receiverName returns the name of the type that a method belongs to.
func receiverName(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if ident, ok := t.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

// declaredTypes returns the types that the files of the API declare, in the order of controller-gen, which reads the files by name.
func (r *renaming) declaredTypes(files []*goFile, d *declarations) (types []string) {
	files = slices.DeleteFunc(slices.Clone(files), func(f *goFile) bool { return !r.isAPI(f.folder()) })
	slices.SortFunc(files, func(a, b *goFile) int { return strings.Compare(r.target(a.name), r.target(b.name)) })
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					name := t.Name.Name
					if renamed, ok := d.inPackage[modulePath+"/"+f.folder()][name]; ok {
						name = renamed
					}
					types = append(types, name)
				}
			}
		}
	}
	return types
}
