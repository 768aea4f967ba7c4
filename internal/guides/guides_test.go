//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

// Package guides tests the code that the pages in docs/guides show: it is the code of this package. It contains no code for
// users.
package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A block in a list is indented.
var goBlock = regexp.MustCompile("(?ms)^( *)```go\n(.*?)^ *```")

// TestPages checks that each block of Go code in a guide, and in the page external, is code of this package, or of the example memcached, which
// compiles and is tested. A line of a block that is only an ellipsis stands for code that the guide leaves out.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no guides: %v", err)
	}
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", "controller/", "api/v1/", "api/v1alpha1/"} {
		example, err := filepath.Glob("../../examples/memcached/" + folder + "*.go")
		if err != nil || len(example) == 0 {
			t.Fatalf("the example memcached has no code in %q: %v", folder, err)
		}
		sources = append(sources, example...)
	}
	pages = append(pages, "../../docs/external.md")
	var code []string
	for _, file := range sources {
		code = append(code, read(t, file))
	}
	for _, page := range pages {
		for _, fault := range check(filepath.Base(page), read(t, page), code) {
			t.Error(fault)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// check returns the first line of each part of a block that is in none of the files.
func check(page, text string, code []string) (faults []string) {
	for _, block := range goBlock.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"), "\n…\n") {
			part = strings.Trim(part, "\n")
			if part != "" && !slices.ContainsFunc(code, func(file string) bool { return strings.Contains("\n"+file, "\n"+part+"\n") }) {
				first, _, _ := strings.Cut(part, "\n")
				faults = append(faults, fmt.Sprintf("docs/guides/%s: the code that begins with %q is neither in internal/guides nor in examples/memcached", page, first))
			}
		}
	}
	return faults
}

func TestCheckFindsFaults(t *testing.T) {
	const code = "package shop\n\nfunc a() int {\n\treturn 1\n}\n\nfunc b() int {\n\treturn 2\n}\n"
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"Same":    {"it is the code", "```go\nfunc a() int {\n\treturn 1\n}\n```\n", nil},
		"LeftOut": {"the guide leaves out a function", "```go\npackage shop\n…\nfunc b() int {\n\treturn 2\n}\n```\n", nil},
		"Other":   {"it has changed since", "```go\nfunc a() int {\n\treturn 3\n}\n```\n", []string{`docs/guides/page.md: the code that begins with "func a() int {" is neither in internal/guides nor in examples/memcached`}},
		"PartOfALine": {
			"a line is shown as a whole", "```go\nunc a() int {\n```\n",
			[]string{`docs/guides/page.md: the code that begins with "unc a() int {" is neither in internal/guides nor in examples/memcached`},
		},
		"List":  {"the block is indented", "1. a\n\n   ```go\n   func a() int {\n   \treturn 1\n   }\n   ```\n", nil},
		"Shell": {"other blocks are not Go", "```sh\nmake\n```\n", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check("page.md", tc.text, []string{code})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
