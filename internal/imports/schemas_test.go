package imports

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSchemas checks the list in docs/compatibility.md: it must name exactly the packages that import the modules with the schemas of the
// API. These modules change their major version with Kubernetes, so as few packages as possible should import them.
func TestSchemas(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	graph := readModule(t)
	for _, module := range []string{"sigs.k8s.io/structured-merge-diff/v6", "k8s.io/kube-openapi"} {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(module) + "`[^|]*\\|(.*)\\|$").FindStringSubmatch(string(page))
		if row == nil {
			t.Fatalf("docs/compatibility.md has no row for %s", module)
		}
		var listed, importing []string
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, name[1])
		}
		for pkg, imports := range graph {
			if slices.ContainsFunc(imports, func(imported string) bool { return strings.HasPrefix(imported, module+"/") }) {
				importing = append(importing, pkg)
			}
		}
		slices.Sort(importing)
		slices.Sort(listed)
		if !slices.Equal(listed, importing) {
			t.Errorf("%s is imported by %v, and docs/compatibility.md lists %v", module, importing, listed)
		}
	}
}
