package main

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// generated returns a file with deep copies as controller-gen writes it: the methods are sorted by the names of the types, and the names
// of the imports depend on the name of the package and on the order in which the types are declared.
func generated(text []byte, types []string) ([]byte, error) {
	f, err := parse("zz_generated.deepcopy.go", text)
	if err != nil {
		return nil, err
	}
	names := importNames(f, types)
	e := &editor{goFile: f}
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		written := spec.Path.Value
		if name := names[imported]; name != path.Base(imported) {
			written = name + " " + written
		}
		e.replace(spec, written)
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if x, imported := importOf(f, n); imported != "" && names[imported] != x.Name {
			e.replace(x, names[imported])
		}
		return true
	})
	if f, err = parse(f.name, e.apply()); err != nil {
		return nil, err
	}
	return sortMethods(f), nil
}

// importOf returns the identifier of the import that a selector selects from, and the import's path.
func importOf(f *goFile, n ast.Node) (*ast.Ident, string) {
	if selector, ok := n.(*ast.SelectorExpr); ok {
		if x, ok := selector.X.(*ast.Ident); ok && x.Obj == nil {
			return x, f.imports[x.Name]
		}
	}
	return nil, ""
}

// importNames returns the names of imports by their paths. A name is the last element of the path. If another import or the package
// has it already, the element before is put in front: corev1 for k8s.io/api/core/v1.
func importNames(f *goFile, types []string) map[string]string {
	names, taken := map[string]string{}, map[string]bool{f.syntax.Name.Name: true}
	for _, name := range types {
		for _, decl := range f.syntax.Decls {
			if function, ok := decl.(*ast.FuncDecl); !ok || function.Recv == nil || receiverName(function) != name {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				_, imported := importOf(f, n)
				if imported == "" || names[imported] != "" {
					return true
				}
				rest, short := path.Dir(imported), path.Base(imported)
				for taken[short] && rest != "." {
					short = strings.Map(identifierRune, path.Base(rest)) + short
					rest = path.Dir(rest)
				}
				names[imported], taken[short] = short, true
				return true
			})
		}
	}
	return names
}

func identifierRune(r rune) rune {
	if r < 0x80 && isWord(byte(r)) {
		return r
	}
	return '_'
}

// sortMethods returns a file with its methods sorted by the names of their types.
func sortMethods(f *goFile) []byte {
	type method struct{ receiver, text string }
	var methods []method
	var starts []int
	for _, decl := range f.syntax.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok && function.Recv != nil && function.Doc != nil {
			starts = append(starts, f.set.Position(function.Doc.Pos()).Offset)
			methods = append(methods, method{receiver: receiverName(function)})
		}
	}
	if len(starts) == 0 {
		return f.text
	}
	for i, end := range append(slices.Clone(starts[1:]), len(f.text)) {
		methods[i].text = strings.TrimSpace(string(f.text[starts[i]:end])) + "\n"
	}
	slices.SortStableFunc(methods, func(a, b method) int { return strings.Compare(a.receiver, b.receiver) })
	out := slices.Clone(f.text[:starts[0]])
	for i, m := range methods {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, m.text...)
	}
	return out
}
