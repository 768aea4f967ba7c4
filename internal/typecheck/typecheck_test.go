package typecheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLoad checks a module with packages that compile, a package that does not, and a test that uses what only a test file declares.
func TestLoad(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.26.0\n", "shop.go": "package shop\n\nimport \"strings\"\n\nfunc open() bool { return strings.ToUpper(\"\") == \"\" }\n",
		"export_test.go": "package shop\n\nvar Open = open\n", "shop_test.go": "package shop_test\n\nimport \"example.com/shop\"\n\nvar _ bool = shop.Open()\n",
		"wrong/wrong.go": "package wrong\n\nvar _ = shop\n",
	} {
		file := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	options := Options{Dir: folder, Env: []string{"GOWORK=off"}, Patterns: []string{"./..."}, Tests: true, Uses: true}
	packages, _, err := Load(t.Context(), options)
	require.NoError(t, err)
	found := map[string]string{}
	for _, p := range packages {
		found[p.ImportPath] = ""
		if p.Err != nil {
			_, found[p.ImportPath], _ = strings.Cut(p.Err.Error(), ".go:")
			continue
		}
		require.NotEmpty(t, p.Info.Defs)
	}
	require.Equal(t, map[string]string{
		"example.com/shop": "", "example.com/shop [example.com/shop.test]": "", "example.com/shop_test [example.com/shop.test]": "",
		"example.com/shop/wrong": "3:9: undefined: shop",
	}, found)

	require.NoError(t, os.WriteFile(filepath.Join(folder, "wrong", "wrong.go"), []byte("package"), 0o600))
	_, _, err = Load(t.Context(), options)
	require.Error(t, err)
	options.Dir = t.TempDir()
	_, _, err = Load(t.Context(), options)
	require.ErrorContains(t, err, "list the packages in "+options.Dir)
}
