package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// goFile is a file of Go source of the example.
type goFile struct {
	name    string // in the embedded source
	text    []byte
	set     *token.FileSet
	syntax  *ast.File
	imports map[string]string // paths by the names that the file uses
}

func parse(name string, text []byte) (*goFile, error) {
	f := &goFile{name: name, text: text, set: token.NewFileSet(), imports: map[string]string{}}
	var err error
	if f.syntax, err = parser.ParseFile(f.set, name, text, parser.ParseComments); err != nil {
		return nil, err
	}
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		f.imports[local] = imported
	}
	return f, nil
}

func (f *goFile) folder() string { return path.Dir(f.name) }

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
			switch n := n.(type) {
			case *ast.Ident:
				used[n.Name] = true
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
			return true
		})
	}
	d.types = r.declaredTypes(files, d)
	for name := range d.local { // an import that has the name of a variable is not renamed
		for _, f := range files {
			if imported, ok := f.imports[name]; ok && !r.isOwn(imported) {
				delete(d.local, name)
			}
		}
	}
	r.words = map[string]string{}
	all := []map[string]string{d.local, d.members}
	for _, declared := range d.inPackage {
		all = append(all, declared)
	}
	for _, declared := range all {
		for name, renamed := range declared {
			if used[renamed] {
				return nil, fmt.Errorf("-kind %s: choose another one, since the code of example %s uses the name %s for something else",
					r.to.kind, r.from.lower, renamed)
			}
			if name != r.from.lower && name != r.from.plural { // which are ordinary words in sentences
				r.words[name] = renamed
			}
		}
	}
	for _, alias := range []string{r.to.alias, r.to.lower + r.to.version, "api" + r.to.version} {
		if r.to.alias = alias; !used[alias] || alias == r.from.alias {
			return d, nil
		}
	}
	return d, nil
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

// isAPI reports whether a folder of the embedded source is the package of the example's API.
func (r *renaming) isAPI(folder string) bool {
	return folder == r.from.lower+"/api/"+r.from.version
}

// isOwn reports whether an import path is that of a package of the example.
func (r *renaming) isOwn(imported string) bool {
	return strings.HasPrefix(imported, r.from.packages+"/")
}

// importPath returns the path under which the copy imports what the example imports.
func (r *renaming) importPath(imported string) string {
	if rest, ok := strings.CutPrefix(imported, r.from.packages+"/"); ok {
		return r.to.packages + "/" + strings.Replace(rest, "api/"+r.from.version, "api/"+r.to.version, 1)
	}
	if rest, ok := strings.CutPrefix(imported, r.from.shared+"/"); ok {
		return r.to.shared + "/" + rest
	}
	return imported
}

// edit is a replacement of a part of a file.
type edit struct {
	from, to int
	text     string
}

// editor collects the edits of one file.
type editor struct {
	*renaming
	*goFile
	*declarations
	edits []edit
	done  map[ast.Node]bool
}

// source returns a file of the example with the names of the copy, formatted. Only the imports are renamed in a file of the folder
// internal.
func (r *renaming) source(f *goFile, d *declarations) ([]byte, error) {
	e := &editor{renaming: r, goFile: f, declarations: d, done: map[ast.Node]bool{}}
	if strings.HasPrefix(f.name, "internal/") {
		for _, spec := range f.syntax.Imports {
			e.importSpec(spec)
		}
	} else {
		ast.Inspect(f.syntax, e.visit)
		e.comments()
	}
	text, err := format.Source(e.apply())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	if strings.HasPrefix(path.Base(f.name), "zz_generated.") {
		return generated(text, d.types)
	}
	return text, nil
}

func (e *editor) apply() []byte {
	slices.SortFunc(e.edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	end := 0
	for _, edit := range e.edits {
		out = append(append(out, e.goFile.text[end:edit.from]...), edit.text...)
		end = edit.to
	}
	return append(out, e.goFile.text[end:]...)
}

func (e *editor) replace(n ast.Node, text string) {
	e.edits = append(e.edits, edit{e.set.Position(n.Pos()).Offset, e.set.Position(n.End()).Offset, text})
}

func (e *editor) visit(n ast.Node) bool {
	if n == nil || e.done[n] {
		return false
	}
	switch n := n.(type) {
	case *ast.File:
		if e.isAPI(e.folder()) && e.from.version != e.to.version {
			e.replace(n.Name, e.to.version)
		}
		e.done[n.Name] = true
	case *ast.CommentGroup:
		return false
	case *ast.ImportSpec:
		e.importSpec(n)
		return false
	case *ast.Field:
		if n.Tag != nil {
			e.done[n.Tag] = true
		}
	case *ast.CompositeLit:
		e.version(n)
	case *ast.BasicLit:
		e.literal(n)
	case *ast.SelectorExpr:
		e.selector(n)
		ast.Inspect(n.X, e.visit)
		return false
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok {
			e.ident(key, e.local, e.inPackage[modulePath+"/"+e.folder()], e.members)
			e.done[key] = true
		}
	case *ast.FuncDecl:
		if n.Recv != nil {
			e.ident(n.Name, e.members)
			e.done[n.Name] = true
		}
	case *ast.StructType:
		e.fields(n.Fields)
	case *ast.InterfaceType:
		e.fields(n.Methods)
	case *ast.Ident:
		if _, imported := e.imports[n.Name]; imported {
			if n.Name == e.from.alias && e.isOwn(e.imports[n.Name]) {
				e.replace(n, e.to.alias)
			}
		} else {
			e.ident(n, e.inPackage[modulePath+"/"+e.folder()], e.local)
		}
	}
	return true
}

// ident replaces an identifier by what the first of some declarations makes of it.
func (e *editor) ident(n *ast.Ident, declared ...map[string]string) {
	for _, names := range declared {
		if renamed, ok := names[n.Name]; ok {
			e.replace(n, renamed)
			return
		}
	}
}

func (e *editor) fields(list *ast.FieldList) {
	for _, field := range list.List {
		for _, name := range field.Names {
			e.ident(name, e.members)
			e.done[name] = true
		}
	}
}

func (e *editor) selector(n *ast.SelectorExpr) {
	if x, ok := n.X.(*ast.Ident); ok {
		if imported, isImport := e.imports[x.Name]; isImport {
			e.ident(n.Sel, e.inPackage[imported])
			return
		}
	}
	e.ident(n.Sel, e.members)
}

func (e *editor) importSpec(n *ast.ImportSpec) {
	imported, err := strconv.Unquote(n.Path.Value)
	if err != nil {
		return
	}
	if e.importPath(imported) != imported {
		e.replace(n.Path, strconv.Quote(e.importPath(imported)))
	}
	if n.Name != nil && n.Name.Name == e.from.alias && e.isOwn(imported) {
		e.replace(n.Name, e.to.alias)
	}
}

// version replaces the version in a literal that has the group beside it: GroupVersion{Group: "shop.example.com", Version: "v1"}.
func (e *editor) version(n *ast.CompositeLit) {
	fields := map[string]*ast.BasicLit{}
	for _, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			key, isIdent := pair.Key.(*ast.Ident)
			value, isLiteral := pair.Value.(*ast.BasicLit)
			if isIdent && isLiteral {
				fields[key.Name] = value
			}
		}
	}
	group, version := fields["Group"], fields["Version"]
	if group != nil && version != nil && group.Value == strconv.Quote(e.from.group) && version.Value == strconv.Quote(e.from.version) {
		e.replace(version, strconv.Quote(e.to.version))
		e.done[version] = true
	}
}

func (e *editor) literal(n *ast.BasicLit) {
	if n.Kind != token.STRING {
		return
	}
	old, err := strconv.Unquote(n.Value)
	if err != nil {
		return
	}
	text := e.renaming.text(old)
	switch {
	case text == old:
	case strings.HasPrefix(n.Value, "`"):
		e.replace(n, "`"+text+"`")
	default:
		e.replace(n, strconv.Quote(text))
	}
}

// comments renames in all comments. A comment on a declaration that keeps its name keeps its first word.
func (e *editor) comments() {
	keeps, root := map[*ast.Comment]bool{}, (*ast.Comment)(nil)
	for _, decl := range e.syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Doc != nil && decl.Name.Name == e.from.kind && !e.isAPI(e.folder()) {
				keeps[decl.Doc.List[0]] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == e.from.kind && decl.Doc != nil && e.isAPI(e.folder()) {
					root = e.resource(decl.Doc)
				}
			}
		}
	}
	for _, group := range e.syntax.Comments {
		for _, c := range group.List {
			text := c.Text
			switch {
			case c == root:
				continue
			case keeps[c]:
				first := "// " + e.from.kind
				text = first + e.comment(strings.TrimPrefix(text, first))
			default:
				text = e.comment(text)
			}
			if c == group.List[0] && group.End() < e.syntax.Name.Pos() {
				text = strings.Replace(text, "// Package "+e.from.version+" ", "// Package "+e.to.version+" ", 1)
			}
			if text != c.Text {
				e.replace(c, text)
			}
		}
	}
}

func (e *editor) comment(text string) string {
	if marker, ok := strings.CutPrefix(text, "// +kubebuilder:rbac:"); ok {
		return "// +kubebuilder:rbac:" + e.rbac(marker)
	}
	if e.isAPI(e.folder()) || !e.kept {
		return e.renaming.text(text)
	}
	link := "[" + e.from.kind + "]" // which refers to what keeps the name
	parts := strings.Split(text, link)
	for i := range parts {
		parts[i] = e.renaming.text(parts[i])
	}
	return strings.Join(parts, link)
}

// rbac returns the arguments of an RBAC marker. The plural is the kind's only with the kind's group.
func (r *renaming) rbac(marker string) string {
	arguments := strings.Split(marker, ",")
	if !slices.Contains(arguments, "groups="+r.from.group) {
		return marker
	}
	for i, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		switch name {
		case "groups":
			value = r.to.group
		case "resources":
			value = strings.Join(r.resources(strings.Split(value, ";")), ";")
		}
		arguments[i] = name + "=" + value
	}
	return strings.Join(arguments, ",")
}

// resources returns the names of resources and subresources of the group.
func (r *renaming) resources(names []string) []string {
	renamed := make([]string, len(names))
	for i, name := range names {
		plural, sub, found := strings.Cut(name, "/")
		if plural == r.from.plural {
			plural = r.to.plural
		}
		renamed[i] = plural
		if found {
			renamed[i] += "/" + sub
		}
	}
	return renamed
}

// resource replaces or adds the marker that names the resource of the kind, without the short names of the example's. It returns the
// comment that it has replaced.
func (e *editor) resource(doc *ast.CommentGroup) *ast.Comment {
	marker := "// +kubebuilder:resource:path=" + e.to.plural
	for _, c := range doc.List {
		arguments, ok := strings.CutPrefix(c.Text, "// +kubebuilder:resource:")
		if !ok {
			continue
		}
		for argument := range strings.SplitSeq(arguments, ",") {
			if !strings.HasPrefix(argument, "shortName=") && !strings.HasPrefix(argument, "path=") {
				marker += "," + argument
			}
		}
		e.replace(c, marker)
		return c
	}
	for _, c := range doc.List {
		if c.Text == "// +kubebuilder:object:root=true" {
			e.replace(c, c.Text+"\n"+marker)
			return c
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
			if pattern.Match(text) {
				return fmt.Errorf("%s still has the name %s of example %s; please report this as a bug", file, name, r.from.lower)
			}
		}
	}
	return nil
}
