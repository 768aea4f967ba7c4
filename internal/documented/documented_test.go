// Package documented tests that every exported identifier of the packages that users import has its own comment. This includes each field,
// each method of an interface, and each constant of a group. It does not include methods named Error, because the interface error explains
// them. The linter revive does not suffice: it accepts one comment for a group, and does not look into types. The package contains only
// tests.
package documented

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryExportedIdentifier(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	checked := 0
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		checked++
		missing, err := undocumented(name, source)
		for _, identifier := range missing {
			t.Errorf("%s has no comment: write what it does, its unit and its default", identifier)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 50 {
		t.Errorf("only %d files were found", checked)
	}
}

// skip skips the folders that have no package for users: other modules, internal packages, test data and hidden folders.
func skip(root fs.FS, folder string) error {
	if folder == "." {
		return nil
	}
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	base := path.Base(folder)
	if err == nil || slices.Contains([]string{"bin", "internal", "testdata"}, base) || strings.HasPrefix(base, ".") {
		return fs.SkipDir
	}
	return nil
}

// undocumented returns the positions and names of the exported identifiers in a file that have no comment.
func undocumented(name string, source []byte) (missing []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || file.Name.Name == "main" {
		return nil, err
	}
	check := func(documented bool, owner string, names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() && !documented {
				missing = append(missing, files.Position(name.Pos()).String()+": "+owner+name.Name)
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if owner, exported := receiver(decl); exported {
				check(decl.Doc != nil || owner != "" && decl.Name.Name == "Error", owner, decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					check(spec.Doc != nil || spec.Comment != nil || !decl.Lparen.IsValid() && decl.Doc != nil, "", spec.Names...)
				case *ast.TypeSpec:
					check(spec.Doc != nil || !decl.Lparen.IsValid() && decl.Doc != nil, "", spec.Name)
					for _, member := range members(spec) {
						check(member.Doc != nil || member.Comment != nil, spec.Name.Name+".", member.Names...)
					}
				}
			}
		}
	}
	return missing, nil
}

// receiver returns the name of a method's type with a dot, and whether users can call the method. For a function it returns "".
func receiver(decl *ast.FuncDecl) (owner string, exported bool) {
	if decl.Recv == nil {
		return "", true
	}
	of := decl.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	name, ok := of.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name + ".", name.IsExported()
}

// members returns the fields of an exported struct, or the methods of an exported interface. It leaves out embedded types, which have their
// comments where they are declared.
func members(spec *ast.TypeSpec) []*ast.Field {
	if !spec.Name.IsExported() {
		return nil
	}
	switch of := spec.Type.(type) {
	case *ast.StructType:
		return of.Fields.List
	case *ast.InterfaceType:
		return of.Methods.List
	}
	return nil
}

func TestUndocumented(t *testing.T) {
	tests := map[string]struct {
		reason string
		source string
		want   []string
	}{
		"Documented": {"a comment above or beside it", "// A is one.\nconst A = 1\n\nconst (\n\tB = 2 // the second\n\t// C is three.\n\tC = 3\n)\n", nil},
		"Group":      {"the comment of a group is about all of them", "// What there is.\nconst (\n\tA = 1\n)\n", []string{"a.go:4:2: A"}},
		"Function":   {"functions and methods", "func F() {}\n\n// T is a type.\ntype T[E any] struct{}\n\nfunc (*T[E]) M() {}\n\nfunc (*T[E]) Error() string {}\n", []string{"a.go:2:6: F", "a.go:7:14: T.M"}},
		"Fields":     {"also those of one line", "// T is a type.\ntype T struct {\n\tA, B int\n\tC int // the third\n\tT2\n\td int\n}\n", []string{"a.go:4:2: T.A", "a.go:4:5: T.B"}},
		"Interfaces": {"methods of interfaces", "// T is a type.\ntype T interface {\n\terror\n\tM()\n}\n", []string{"a.go:5:2: T.M"}},
		"Type":       {"a type in a group", "type (\n\tT int\n)\n", []string{"a.go:3:2: T"}},
		"Unexported": {"nobody else sees them", "type t struct{ A int }\n\nfunc (t) M() {}\n\nfunc f() {}\n", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := undocumented("a.go", []byte("package a\n"+tc.source))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
