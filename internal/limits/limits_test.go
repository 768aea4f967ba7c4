// Package limits tests how large packages and types may become: what is larger, nobody holds in the head. The linters limit
// functions. The package contains no code.
package limits

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

	"github.com/stretchr/testify/require"
)

const (
	mostFiles   = 20 // a package, without its tests
	mostMethods = 30 // a type
)

// sizes are the number of files of each package, by its folder, and the number of methods of each type.
type sizes struct{ files, methods map[string]int }

// measure returns the sizes of all packages below a folder.
func measure(root fs.FS) (sizes, error) {
	found := sizes{files: map[string]int{}, methods: map[string]int{}}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && (slices.Contains([]string{"bin", "testdata"}, entry.Name()) || len(entry.Name()) > 1 && strings.HasPrefix(entry.Name(), ".")) {
				return fs.SkipDir
			}
			return err
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(path.Base(name), "zz_generated") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found.files[path.Dir(name)]++
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				found.methods[path.Dir(name)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
		return nil
	})
	return found, err
}

// receiver returns the name of the type of a receiver.
func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr:
		return receiver(typ.X)
	case *ast.IndexListExpr:
		return receiver(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return ""
}

func TestLimits(t *testing.T) {
	found, err := measure(os.DirFS(filepath.Join("..", "..")))
	require.NoError(t, err)
	require.Greater(t, len(found.files), 50, "all modules of the repository")
	require.Greater(t, len(found.methods), 200)
	for folder, n := range found.files {
		if n > mostFiles {
			t.Errorf("package %s has %d files: move what belongs together into a package below it, at most %d", folder, n, mostFiles)
		}
	}
	for typ, n := range found.methods {
		if n > mostMethods {
			t.Errorf("type %s has %d methods: find the part with a state of its own, at most %d", typ, n, mostMethods)
		}
	}
}

func TestMeasure(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"shop/cart.go":                  "package shop\ntype Cart struct{}\nfunc (Cart) Add() {}\nfunc (c *Cart) Drop() {}\nfunc free() {}\n",
		"shop/list.go":                  "package shop\ntype List[T, S any] struct{}\nfunc (l *List[T, S]) Len() {}\n",
		"shop/cart_test.go":             "package shop\nfunc (Cart) helper() {}\n",
		"shop/zz_generated.deepcopy.go": "package shop\nfunc (Cart) DeepCopy() {}\n",
		"shop/testdata/x.go":            "package x\n",
	} {
		file := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	found, err := measure(os.DirFS(folder))
	require.NoError(t, err)
	require.Equal(t, sizes{map[string]int{"shop": 2}, map[string]int{"shop.Cart": 2, "shop.List": 1}}, found)
}
