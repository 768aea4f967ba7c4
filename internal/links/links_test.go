// Package links tests that the links, the names and the make targets in the repository's pages and workflows exist. It contains only tests,
// and opens no network connection.
package links

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const packageSite = "https://pkg.go.dev/github.com/opblocks/opblocks"

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code     = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]+`")
	name     = regexp.MustCompile(`(?:^|[^.\w/])([a-z]+)\.([A-Z]\w*)`)
	notASlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestPages(t *testing.T) {
	s := site{os.DirFS(filepath.Join("..", "..")), map[string]map[string]bool{}}
	pages, err := fs.Glob(s.root, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"llms.txt", "docs/*.md", "docs/guides/*.md", "examples/*/README.md"} {
		more, err := fs.Glob(s.root, pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		pages = append(pages, more...)
	}
	for _, page := range pages {
		for _, fault := range s.check(page) {
			t.Error(fault)
		}
	}
}

// site has the files of the repository, and the exported symbols of those packages that were already read.
type site struct {
	root    fs.FS
	symbols map[string]map[string]bool // by folder of the package
}

// check returns what is wrong on a page. In the changelog, it does not check names in code, because they may belong to an earlier version.
func (s site) check(page string) (faults []string) {
	text, err := fs.ReadFile(s.root, page)
	if err != nil {
		return []string{err.Error()}
	}
	prose := code.ReplaceAllStringFunc(string(text), func(c string) string { return strings.Map(func(rune) rune { return 'x' }, c) })
	for _, m := range link.FindAllStringSubmatch(prose, -1) {
		if fault := s.checkLink(page, m[1]); fault != "" {
			faults = append(faults, fmt.Sprintf("%s: the link %s: %s", page, m[1], fault))
		}
	}
	if page == "CHANGELOG.md" {
		return faults
	}
	for _, c := range code.FindAllString(string(text), -1) {
		for _, m := range name.FindAllStringSubmatch(c, -1) {
			if folder, ours := packages[m[1]]; ours && !s.exported(folder)[m[2]] {
				faults = append(faults, fmt.Sprintf("%s: package %s has no %s", page, folder, m[2]))
			}
		}
	}
	return slices.Compact(faults)
}

// packages are the folders of the packages whose names pages use in code.
var packages = map[string]string{
	"conditions": "conditions", "fakeapi": "reconcile/reconciletest/fakeapi", "finalizers": "finalizers", "overlay": "ownedresources/overlay", "ownedresources": "ownedresources",
	"predicates": "predicates", "reconcile": "reconcile", "reconciletest": "reconcile/reconciletest", "schedule": "schedule",
	"scheduledjobs": "reconcile/scheduledjobs", "secrets": "reconcile/secrets", "startqueue": "reconcile/startqueue", "storageversion": "reconcile/storageversion", "workload": "ownedresources/workload",
}

func (s site) checkLink(page, target string) string {
	address, anchor, _ := strings.Cut(target, "#")
	if folder, ours := strings.CutPrefix(address, packageSite); ours {
		folder = path.Join(".", strings.TrimPrefix(folder, "/"))
		symbols := s.exported(folder)
		switch {
		case len(symbols) == 0:
			return "there is no such package"
		case anchor != "" && !symbols[anchor]:
			return "the package has no such symbol"
		}
		return ""
	}
	if strings.Contains(address, "://") {
		return "" // external links are not checked: the test opens no network connection
	}
	file := page
	if address != "" {
		file = path.Join(path.Dir(page), address)
	}
	if _, err := fs.Stat(s.root, file); err != nil {
		return "there is no such file"
	}
	if anchor != "" && !s.headings(file)[anchor] {
		return "the page has no such heading"
	}
	return ""
}

// headings returns the anchors that GitHub gives to the headings of a page.
func (s site) headings(page string) map[string]bool {
	text, err := fs.ReadFile(s.root, page)
	if err != nil {
		return nil
	}
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		anchors[strings.ReplaceAll(notASlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return anchors
}

func TestCheckFindsFaults(t *testing.T) {
	tests := map[string]struct {
		reason string
		page   string
		want   []string
	}{
		"AllThere":     {"files, headings, packages, functions, methods, fields", "all-there.md", nil},
		"NoFile":       {"a relative link is from the page's folder", "no-file.md", []string{"no-file.md: the link docs/all-there.md: there is no such file"}},
		"NoHeading":    {"also on the page itself", "no-heading.md", []string{"no-heading.md: the link #beside-it: the page has no such heading"}},
		"NoPackage":    {"a folder without Go files", "no-package.md", []string{"no-package.md: the link " + packageSite + "/none: there is no such package"}},
		"NoSymbol":     {"what is not exported has no anchor", "no-symbol.md", []string{"no-symbol.md: the link " + packageSite + "/schedule#plan: the package has no such symbol"}},
		"OldName":      {"names in code are checked as well", "old-name.md", []string{"old-name.md: package schedule has no Plan"}},
		"CHANGELOG.md": {"names in the changelog may be old", "CHANGELOG.md", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := site{os.DirFS("testdata"), map[string]map[string]bool{}}
			if diff := cmp.Diff(tc.want, s.check(tc.page)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
