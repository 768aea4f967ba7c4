package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testModule = "example.com/shop"

// describeSource returns the API of a package with this source.
func describeSource(t *testing.T, source string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "cart.go", "package cart\n"+source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importerOf(t, files)}
	pkg, err := config.Check(testModule+"/cart", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	api := describe(pkg, testModule, publicNames([]*types.Package{pkg}, testModule))
	slices.Sort(api)
	return api
}

// internalSource is an internal package that the sources in the tests may import.
const internalSource = `package stock
type Item struct { Name string }
func (i Item) Next() Item { return i }`

type withInternal struct {
	types.Importer
	stock *types.Package
}

func (i withInternal) Import(path string) (*types.Package, error) {
	if path == i.stock.Path() {
		return i.stock, nil
	}
	return i.Importer.Import(path)
}

func importerOf(t *testing.T, files *token.FileSet) types.Importer {
	t.Helper()
	file, err := parser.ParseFile(files, "stock.go", internalSource, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	stock, err := (&types.Config{}).Check(testModule+"/internal/stock", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return withInternal{importer.ForCompiler(files, "gc", exportData), stock}
}

// exportData opens the export data of a package of Go's standard library. The go command compiles the package if needed.
func exportData(path string) (io.ReadCloser, error) {
	file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", path).Output()
	if err != nil {
		return nil, fmt.Errorf("list package %s: %w", path, err)
	}
	return os.Open(strings.TrimSpace(string(file)))
}

func TestDescribe(t *testing.T) {
	tests := map[string]struct {
		reason string
		source string
		want   []string
	}{
		"Constants": {
			"the value of a constant is read by users, as the reason of a condition is",
			`const Max = 10
			const Empty Reason = "Empty"
			type Reason string`,
			[]string{`cart.Empty const cart.Reason = "Empty"`, `cart.Max const untyped int = 10`, `cart.Reason type string`},
		},
		"Variables": {
			"names of parameters do not matter, those of basic types are the same after an alias",
			`var Hook func(name string, size byte, any interface{}) rune`,
			[]string{`cart.Hook var func(string, uint8, any) int32`},
		},
		"Functions": {
			"type parameters are numbered, so that they can be renamed",
			`func Sum[K comparable, V ~int | ~string](of map[K]V, by ...func(K) (V, error)) (sum V, err error) { return }`,
			[]string{`cart.Sum func[$0 comparable, $1 interface{ ~int | ~string }](map[$0]$1, ...func($0) ($1, error)) ($1, error)`},
		},
		"Structs": {
			"fields and their tags are listed, unexported ones are not, and those of an unexported embedded struct are the struct's own",
			"type Item struct { Name string `json:\"name\"`; Labels; part; count int }\ntype Labels map[string]string\ntype part struct { Size int }",
			[]string{
				`cart.Item type struct`, `cart.Item.Labels embedded field cart.Labels`, "cart.Item.Name field string \"json:\\\"name\\\"\"",
				`cart.Item.Size field int`, `cart.Labels type map[string]string`,
			},
		},
		"Methods": {
			"a method of the value can be called on the pointer too; promoted methods are the type's",
			`type List[T any] struct { base[T] }
			type base[T any] struct{}
			func (base[T]) Len() int { return 0 }
			func (l List[E]) All() []E { return nil }
			func (l *List[E]) Add(e E) {}
			func (l *List[E]) grow() {}`,
			[]string{
				`cart.List type[$0 any] struct`, `cart.List.Add pointer method ($0)`, `cart.List.All method () []$0`, `cart.List.Len method () int`,
			},
		},
		"Interfaces": {
			"a method that is added to an interface breaks those who implement it, so an interface is one line",
			`type Named interface { error; Name() string }
			type Sized interface { Named; Size() int }`,
			[]string{`cart.Named type interface{ error; Name() string }`, `cart.Sized type interface{ error; Name() string; Size() int }`},
		},
		"ClosedInterfaces": {
			"nobody else implements an interface with unexported methods, so methods can be added",
			`type Closed interface { Name() string; closed() }`,
			[]string{`cart.Closed type interface with unexported methods`, `cart.Closed.Name method () string`},
		},
		"Constraints": {
			"embedded constraints are named",
			`type Key interface { comparable; ~int | ~string; Name() string }`,
			[]string{`cart.Key type interface{ comparable; ~int | ~string; Name() string }`},
		},
		"Aliases": {
			"an alias of this module is the type that it names, wherever it is used",
			`type Basket = List
			type List []string
			func First(of Basket) string { return "" }`,
			[]string{`cart.Basket type = cart.List`, `cart.First func(cart.List) string`, `cart.List type []string`},
		},
		"AliasOfInternalType": {
			"users know such a type by its alias alone, so its fields and methods belong to the alias",
			`import "example.com/shop/internal/stock"
			type Item = stock.Item
			func First(of Item) Item { return of }`,
			[]string{`cart.First func(cart.Item) cart.Item`, `cart.Item type struct`, `cart.Item.Name field string`, `cart.Item.Next method () cart.Item`},
		},
		"OtherModules": {
			"other modules move types behind aliases, and their names stay",
			`import "os"
			func Read(file os.FileInfo) error { return nil }`,
			[]string{`cart.Read func(os.FileInfo) error`},
		},
		"Options": {
			"the type that an option changes can be renamed",
			`type Option func(*options)
			type options struct{}`,
			[]string{`cart.Option type func(*cart.unexported)`},
		},
		"Unexported": {
			"what users cannot name is not listed",
			`type item struct { Name string }
			func add(i item) {}
			const max = 1`,
			nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describeSource(t, strings.TrimSpace(tc.source))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
