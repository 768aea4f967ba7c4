package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
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

// isAPI reports whether a folder of the embedded source is the package of the example's API.
func (r *renaming) isAPI(folder string) bool {
	return folder == r.from.lower+"/api/"+r.from.version
}

// isOwn reports whether an import path belongs to a package of the example.
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
