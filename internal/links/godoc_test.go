package links

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// docLink is a link of a doc comment, such as [Explore], [*Report], [Report.Tried] or [reconcile.Wait].
var docLink = regexp.MustCompile(`(?m)(?:^|[^\w\]])\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*(?:\.[A-Z]\w*)?)\](?:[^(:\w]|$)`)

// indented is a line of code in a doc comment.
var indented = regexp.MustCompile(`(?m)^\t.*$`)

// TestDocLinks checks that the links in the doc comments of the packages for users lead to something. pkg.go.dev shows a link that leads
// nowhere as plain text.
func TestDocLinks(t *testing.T) {
	s := site{os.DirFS(filepath.Join("..", "..")), map[string]map[string]bool{}}
	for _, folder := range public {
		for _, fault := range s.checkDocs(folder) {
			t.Error(fault)
		}
	}
}

// checkDocs returns the links in a package's doc comments that lead nowhere. It does not check links to packages of other modules.
func (s site) checkDocs(folder string) (faults []string) {
	files, err := fs.Glob(s.root, path.Join(folder, "*.go"))
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(s.root, name)
		if err != nil {
			return []string{err.Error()}
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return []string{err.Error()}
		}
		for _, comment := range docsOf(file) {
			for _, m := range docLink.FindAllStringSubmatch(indented.ReplaceAllString(comment.Text(), ""), -1) {
				linked, ours := folder, true
				if m[1] != "" {
					linked, ours = packages[m[1]]
				}
				if ours && !s.exported(linked)[m[2]] {
					faults = append(faults, fmt.Sprintf("%s: the link %s leads nowhere", name, strings.Trim(m[0], " .,;()\n")))
				}
			}
		}
	}
	return slices.Compact(faults)
}

// docsOf returns the comments that godoc shows: before the package, and before exported declarations, fields and methods.
func docsOf(file *ast.File) (comments []*ast.CommentGroup) {
	add := func(all ...*ast.CommentGroup) {
		comments = append(comments, slices.DeleteFunc(all, func(c *ast.CommentGroup) bool { return c == nil })...)
	}
	add(file.Doc)
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() {
				add(decl.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						add(decl.Doc, spec.Doc)
						for _, member := range members(spec.Type) {
							add(member.Doc, member.Comment)
						}
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() {
						add(decl.Doc, spec.Doc, spec.Comment)
					}
				}
			}
		}
	}
	return comments
}

func TestCheckDocs(t *testing.T) {
	s := site{fstest.MapFS{
		"reconcile/pass.go": {Data: []byte(`// Package reconcile has [Pass], [*Pass], [Pass.End] and [Gone].
package reconcile

// Pass is made of steps: [conditions.Set], [conditions.Lost], [client.Client] and [a page](page.md).
type Pass struct {
	// End is a time, see [Lost].
	//
	//	[Code]{}
	End int
}

// private is not shown: [Nothing].
func private() {}
`)},
		"conditions/set.go": {Data: []byte("package conditions\n\nfunc Set() {}\n")},
	}, map[string]map[string]bool{}}
	want := []string{
		"reconcile/pass.go: the link [Gone] leads nowhere",
		"reconcile/pass.go: the link [conditions.Lost] leads nowhere",
		"reconcile/pass.go: the link [Lost] leads nowhere",
	}
	if diff := cmp.Diff(want, s.checkDocs("reconcile")); diff != "" {
		t.Error(diff)
	}
}
