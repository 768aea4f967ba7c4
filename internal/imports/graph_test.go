package imports

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readModule returns what each package of the module imports, without the imports of its tests. It reads the files itself, and does not ask
// the go command. So the cached result of a test expires when a file changes, and build tags hide no file.
func readModule(t *testing.T) map[string][]string {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	graph := map[string][]string{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipForeign(root, name)
		case path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		pkg := path.Dir(name)
		imports, err := readImports(root, name)
		graph[pkg] = slices.Compact(slices.Sorted(slices.Values(append(graph[pkg], imports...))))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// skipForeign skips folders of other modules, and folders without packages.
func skipForeign(root fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	base := path.Base(dir)
	if err == nil || base == "bin" || base == "testdata" || strings.HasPrefix(base, ".") {
		return fs.SkipDir
	}
	return nil
}

func readImports(root fs.FS, name string) (imports []string, err error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		imports = append(imports, imported)
	}
	return imports, nil
}
