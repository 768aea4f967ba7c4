// Package sentences tests that comments and pages do not use five patterns that readers have to read twice. CONTRIBUTING.md has the
// patterns, and what to write instead. The package contains only tests.
package sentences

import (
	"bufio"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pattern is a way of writing that readers have to read twice.
type pattern struct {
	name    string
	text    *regexp.Regexp
	except  *regexp.Regexp // texts that match and are allowed; nil for none
	instead string
}

var patterns = []pattern{
	{name: "that of", text: regexp.MustCompile(`(?i)\b(that|those|what) of\b|\bof (which|whom)\b`), instead: "repeat the noun"},
	{
		name: "is no", text: regexp.MustCompile(`(?i)\b(is|are|was|were) no\b`), except: regexp.MustCompile(`(?i)\bno (longer|more)\b`),
		instead: "write 'is not a'",
	},
	{
		name: "Of", text: regexp.MustCompile(`(^|[.:;] )Of [a-z]`), except: regexp.MustCompile(`^Of (returns|is)\b`),
		instead: "begin with the condition: 'If a type occurs twice, the first counts'",
	},
	{
		name: "meanwhile", text: regexp.MustCompile(`(?i)\b(meanwhile|nevertheless|by now|as (it|they) (is|was|are|were) then)\b`),
		instead: "say when, or leave it out",
	},
	{name: "// of", text: regexp.MustCompile(`^// of `), instead: "write a phrase that stands alone, such as 'the number of keys'"},
}

// most is how many sentences may have such a pattern, because they read well in spite of it. testdata/allowed.txt has them.
const most = 20

func TestSentences(t *testing.T) {
	allowed := readAllowed(t)
	seen, files := map[string]bool{}, 0
	root := os.DirFS(filepath.Join("..", ".."))
	require.NoError(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && (slices.Contains([]string{"bin", "testdata"}, entry.Name()) || len(entry.Name()) > 1 && strings.HasPrefix(entry.Name(), ".")) {
				return fs.SkipDir
			}
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		var lines []line
		switch {
		case path.Ext(name) == ".go" && !strings.HasPrefix(path.Base(name), "zz_generated"):
			lines = commentsOf(text)
		case path.Ext(name) == ".md" && !strings.HasSuffix(name, ".zh-CN.md"):
			lines = linesOf(string(text))
		default:
			return nil
		}
		files++
		for _, l := range lines {
			for _, p := range matching(l) {
				key := p.name + "\t" + name + "\t" + l.text
				if seen[key] = true; !allowed[key] {
					t.Errorf("%s:%d: %q: %s\n%s", name, l.number, p.name, p.instead, l.text)
				}
			}
		}
		return nil
	}))
	require.Greater(t, files, 500, "files are missing")
	count := map[string]int{}
	for key := range allowed {
		require.True(t, seen[key], "no line is like this one of testdata/allowed.txt any more: remove it\n%s", key)
		name, _, _ := strings.Cut(key, "\t")
		count[name]++
		require.LessOrEqual(t, count[name], most, "testdata/allowed.txt has too many sentences with %q", name)
	}
}

// readAllowed returns the lines of testdata/allowed.txt. Each has the pattern, the file and the text, separated by tabs.
func readAllowed(t *testing.T) map[string]bool {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "allowed.txt"))
	require.NoError(t, err)
	defer file.Close()
	allowed := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		allowed[lines.Text()] = true
	}
	return allowed
}

// line is a line of a page or of a comment.
type line struct {
	number int
	text   string // it begins with "// " if the comment is on a line with code
}

// quoted matches text in quotation marks, in which patterns are allowed.
var quoted = regexp.MustCompile(`"[^"]*"`)

// matching returns the patterns that a line has.
func matching(l line) (found []pattern) {
	for _, p := range patterns {
		text := quoted.ReplaceAllString(l.text, "")
		if p.except != nil {
			text = p.except.ReplaceAllString(text, "")
		}
		if p.text.MatchString(text) {
			found = append(found, p)
		}
	}
	return found
}

// commentsOf returns the lines of the comments in a Go file, except the output of examples, and comments for tools.
func commentsOf(source []byte) (lines []line) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	output, lastCode := false, 0
	for {
		pos, tok, text := s.Scan()
		at := files.Position(pos).Line
		switch {
		case tok == token.EOF:
			return lines
		case tok != token.COMMENT:
			if tok != token.SEMICOLON || text != "\n" {
				output, lastCode = false, at
			}
			continue
		case strings.HasPrefix(text, "// Output:"), strings.HasPrefix(text, "// Unordered output:"):
			output = true
		}
		if output || strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//nolint") || strings.HasPrefix(text, "// +") {
			continue
		}
		if at != lastCode {
			text = strings.TrimPrefix(strings.TrimPrefix(text, "//"), " ")
		}
		lines = append(lines, line{at, text})
	}
}

// linesOf returns the lines of a page, without its blocks of code.
func linesOf(page string) (lines []line) {
	code := false
	for i, text := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			code = !code
			continue
		}
		if !code {
			lines = append(lines, line{i + 1, text})
		}
	}
	return lines
}

func TestMatching(t *testing.T) {
	tests := map[string]struct {
		reason string
		source string
		want   []string
	}{
		"Plain":        {"Nothing is wrong with it.", "// Hash returns a hash.\nvar x int", nil},
		"ThatOf":       {"The reader looks for the noun.", "// The error is that of Hash.\nvar x int", []string{"that of"}},
		"IsNo":         {"It negates the noun and not the verb.", "// It is no type.\nvar x int", []string{"is no"}},
		"NoLonger":     {"This is usual.", "// It is no longer there, and there are no more.\nvar x int", nil},
		"Fronted":      {"The condition comes first.", "// Of two the first counts.\nvar x int", []string{"Of"}},
		"Meanwhile":    {"It does not say when.", "// It may meanwhile be gone.\nvar x int", []string{"meanwhile"}},
		"Fragment":     {"It depends on the name beside it.", "var x int // of the key", []string{"// of"}},
		"WholeComment": {"Only a comment beside code depends on a name.", "// of the key\nvar x int", nil},
		"String":       {"It is not a comment.", `var x = "that of"`, nil},
		"Output":       {"An example prints it.", "func ExampleX() {\n\t// Output:\n\t// that of\n}", nil},
		"Two":          {"Each is named.", "// Of two it is no type.\nvar x int", []string{"is no", "Of"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range commentsOf([]byte("package x\n\n" + tc.source + "\n")) {
				for _, p := range matching(l) {
					got = append(got, p.name)
				}
			}
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}
