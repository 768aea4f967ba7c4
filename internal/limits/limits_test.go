// Package limits tests how much a reader has to keep in mind at once: how many methods a type gets from embedded types of this module, and
// how much the files of a package use each other. The linters have limits only for functions. The package contains only tests.
package limits

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/typecheck"
)

const module = "github.com/opblocks/opblocks"

// ours returns the path of a package inside of this module, or "" for a package of another module.
func ours(pkg *types.Package) string {
	if pkg == nil {
		return ""
	}
	path, _, _ := strings.Cut(pkg.Path(), " ")
	if path == module {
		return "."
	}
	below, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return below
}

// borrowed returns, for each struct, how many methods it gets from embedded structs of this module.
func borrowed(pkg *types.Package) map[string]int {
	found := map[string]int{}
	for _, name := range pkg.Scope().Names() {
		typ, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || typ.IsAlias() {
			continue
		}
		if _, ok := typ.Type().Underlying().(*types.Struct); !ok {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(typ.Type()))
		for method := range methods.Methods() {
			if len(method.Index()) > 1 && ours(method.Obj().Pkg()) != "" && !types.IsInterface(method.Obj().(*types.Func).Signature().Recv().Type()) {
				found[ours(pkg)+"."+name]++
			}
		}
	}
	return found
}

// needs returns, for each file of a package, the other files that declare something which the file uses.
func needs(p *typecheck.Package, files *token.FileSet) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, file := range p.Files {
		from := files.Position(file.Package).Filename
		all[from] = map[string]bool{}
		for id := range ast.Preorder(file) {
			id, ok := id.(*ast.Ident)
			if !ok || p.Info.Uses[id] == nil || p.Info.Uses[id].Pkg() != p.Types {
				continue
			}
			if to := files.Position(origin(p.Info.Uses[id]).Pos()).Filename; to != from && to != "" {
				all[from][to] = true
			}
		}
	}
	return all
}

// upwards looks for an order in which each file comes before the files that it uses. It returns how many uses still go in the other
// direction. It moves one file after the other to its best place, until no move helps.
func upwards(needs map[string]map[string]bool) int {
	order := slices.Sorted(maps.Keys(needs))
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(needs[b]), len(needs[a])) })
	count := func() (n int) {
		for i, to := range order {
			for _, from := range order[i+1:] {
				if needs[from][to] {
					n++
				}
			}
		}
		return n
	}
	best := count()
	for before := best + 1; best < before; {
		before = best
		for _, file := range slices.Sorted(maps.Keys(needs)) {
			was, rest := slices.Clone(order), slices.DeleteFunc(slices.Clone(order), func(f string) bool { return f == file })
			for i := range order {
				order = slices.Insert(slices.Clone(rest), i, file)
				if n := count(); n < best {
					best, was = n, order
				}
			}
			order = was
		}
	}
	return best
}

func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Origin()
	case *types.Var:
		return obj.Origin()
	}
	return obj
}

// mostBorrowed is how many methods a type may get from embedded structs without an entry below. mostUpwards is the same for the result of
// upwards for a package.
const (
	mostBorrowed = 10
	mostUpwards  = 12
)

// The figures above the limits, as they were when they were last recorded. If a figure rises, the commit has to give a reason. If it falls,
// the lower figure has to be recorded.
var (
	recordedBorrowed = map[string]int{
		"reconcile/reconciletest/internal/simulation/fakemanager.recordingManager": 35, // a manager with recorders of another type
		"reconcile/reconciletest/internal/simulation/operator.apiReader":           17, // as the reader of a real manager, it is a client too
	}
	recordedUpwards = map[string]int{
		"cmd/explore":        20,
		"internal/owned/set": 17,
		"reconcile/reconciletest/internal/memoryserver": 26, // every read and every write may call webhooks, which the server knows, and which need its objects
	}
)

func TestLimits(t *testing.T) {
	packages, files, err := typecheck.Load(t.Context(), typecheck.Options{Dir: filepath.Join("..", ".."), Patterns: []string{"./..."}, Uses: true})
	require.NoError(t, err)
	require.Greater(t, len(packages), 50)
	methods, uses := map[string]int{}, map[string]int{}
	for _, p := range packages {
		require.NoError(t, p.Err)
		maps.Copy(methods, borrowed(p.Types))
		if n := upwards(needs(p, files)); n > mostUpwards {
			uses[ours(p.Types)] = n
		}
	}
	maps.DeleteFunc(methods, func(_ string, n int) bool { return n <= mostBorrowed })
	assert.Equal(t, recordedBorrowed, methods, "give a type that borrows methods by embedding a field, or a narrow interface, for what it needs")
	assert.Equal(t, recordedUpwards, uses, "let a file declare what it needs, or move what two files share below both")
}

// TestMeasure measures a package whose figures are known.
func TestMeasure(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":   "module " + module + "/shop\n\ngo 1.26.0\n",
		"cart.go":  "package shop\n\ntype Cart struct{ item }\n\nfunc (Cart) Add() { price() }\n\ntype named interface{ Name() string }\n\ntype Open struct{ named }\n",
		"item.go":  "package shop\n\nimport \"time\"\n\ntype item struct {\n\tc *Cart\n\ttime.Time\n}\n\nfunc (item) Drop() {}\nfunc (*item) Take() { price() }\n",
		"price.go": "package shop\n\nfunc price() {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	packages, files, err := typecheck.Load(t.Context(), typecheck.Options{Dir: folder, Env: []string{"GOWORK=off"}, Patterns: []string{"."}, Uses: true})
	require.NoError(t, err)
	require.Len(t, packages, 1)
	require.NoError(t, packages[0].Err)
	require.Equal(t, map[string]int{"shop.Cart": 2}, borrowed(packages[0].Types), "the methods of interfaces and of other modules do not count")
	found := needs(packages[0], files)
	require.Len(t, found, 3)
	require.Equal(t, 1, upwards(found), "the cart needs the item, the item the cart, and both the price")
}
