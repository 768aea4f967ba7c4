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
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const index = "docs/README.md"

// TestIndex checks that the index of the documentation, and the list for coding assistants, contain each page.
func TestIndex(t *testing.T) {
	for _, index := range []string{index, "llms.txt"} {
		for _, page := range notListed(t, os.DirFS(filepath.Join("..", "..")), index) {
			t.Errorf("%s does not list %s", index, page)
		}
	}
}

// notListed returns the pages below docs/ that an index does not link. A translation is linked by the page that it translates.
func notListed(t *testing.T, root fs.FS, index string) (missing []string) {
	t.Helper()
	text, err := fs.ReadFile(root, index)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"docs/README.md": true}
	for _, m := range link.FindAllStringSubmatch(string(text), -1) {
		address, _, _ := strings.Cut(m[1], "#")
		listed[path.Join(path.Dir(index), address)] = true
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		pages, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			if !listed[page] && !strings.HasSuffix(page, translated) {
				missing = append(missing, page)
			}
		}
	}
	return missing
}

func TestNotListed(t *testing.T) {
	root := fstest.MapFS{
		index:                   {Data: []byte("[a](a.md#top) [b](more/b.md)")},
		"docs/a.md":             {},
		"docs/a.zh-CN.md":       {},
		"docs/more/b.md":        {},
		"docs/more/left-out.md": {},
	}
	if diff := cmp.Diff([]string{"docs/more/left-out.md"}, notListed(t, root, index)); diff != "" {
		t.Error(diff)
	}
}

// translated is the end of the names of pages in Chinese.
const translated = ".zh-CN.md"

var (
	anyHeading = regexp.MustCompile(`(?m)^(#+) `)
	fenced     = regexp.MustCompile("(?ms)^```.*?^```")
	picture    = regexp.MustCompile(`!\[[^\]]*\]\(([^)\s]+)\)`)
)

// TestTranslations checks that each page in Chinese has the same structure as the English page: as many headings of each level in the same
// order, the same blocks of code, the same pictures, and as many rows in tables.
func TestTranslations(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	var pages []string
	for _, pattern := range []string{"*" + translated, "docs/*" + translated, "docs/*/*" + translated} {
		more, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	if len(pages) == 0 {
		t.Fatal("there is no translation")
	}
	for _, page := range pages {
		original := strings.TrimSuffix(page, translated) + ".md"
		chinese, err := fs.ReadFile(root, page)
		if err != nil {
			t.Fatal(err)
		}
		english, err := fs.ReadFile(root, original)
		if err != nil {
			t.Fatal(err)
		}
		if diff := compareTranslation(string(english), string(chinese)); diff != "" {
			t.Errorf("%s and %s are not in step; bring the translation up to date: -%s +%s:\n%s", original, page, original, page, diff)
		}
	}
}

// shape is the part of a page that must be the same in its translation.
type shape struct {
	Headings, Blocks, Pictures []string
	Rows                       int // the number of rows in tables
}

func compareTranslation(english, chinese string) string {
	return cmp.Diff(shapeOf(english), shapeOf(chinese))
}

func shapeOf(text string) (s shape) {
	s.Blocks = fenced.FindAllString(text, -1)
	prose := fenced.ReplaceAllString(text, "")
	for _, m := range anyHeading.FindAllStringSubmatch(prose, -1) {
		s.Headings = append(s.Headings, m[1])
	}
	for _, m := range picture.FindAllStringSubmatch(prose, -1) {
		s.Pictures = append(s.Pictures, m[1])
	}
	for line := range strings.SplitSeq(prose, "\n") {
		if strings.HasPrefix(line, "|") {
			s.Rows++
		}
	}
	for i, block := range s.Blocks { // comments in a block of code are translated, so they are not compared
		s.Blocks[i] = withoutComments(block)
	}
	return s
}

var (
	shellComment = regexp.MustCompile(`(?m) *# .*$`)
	goComment    = regexp.MustCompile(`(?m)[ \t]*// .*$`)
)

// withoutComments removes the comments from a block of shell commands or Go code.
func withoutComments(block string) string {
	switch {
	case strings.HasPrefix(block, "```sh"):
		return shellComment.ReplaceAllString(block, "")
	case strings.HasPrefix(block, "```go"):
		return goComment.ReplaceAllString(block, "")
	}
	return block
}

func TestCompareTranslation(t *testing.T) {
	const english = "# Start\n\n```sh\nmake test # all\n```\n\n## Run\n\n![a](a.svg)\n\n| a |\n"
	tests := map[string]struct {
		reason  string
		chinese string
		same    bool
	}{
		"InStep":       {"words and comments are translated", "# 开始\n\n```sh\nmake test # 全部\n```\n\n## 运行\n\n![甲](a.svg)\n\n| 甲 |\n", true},
		"OtherCommand": {"commands are the same", "# 开始\n\n```sh\nmake tests\n```\n\n## 运行\n\n![甲](a.svg)\n\n| 甲 |\n", false},
		"NoHeading":    {"a section is missing", "# 开始\n\n```sh\nmake test\n```\n\n![甲](a.svg)\n\n| 甲 |\n", false},
		"NoPicture":    {"a picture is missing", "# 开始\n\n```sh\nmake test\n```\n\n## 运行\n\n| 甲 |\n", false},
		"NoRow":        {"a row of a table is missing", "# 开始\n\n```sh\nmake test\n```\n\n## 运行\n\n![甲](a.svg)\n", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := compareTranslation(english, tc.chinese) == ""; got != tc.same {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
	if !slices.Equal(shapeOf(english).Headings, []string{"#", "##"}) {
		t.Error("headings are not found")
	}
}

// mostWords is the largest number of words in the first paragraph of a page.
const mostWords = 60

// TestIntroductions checks that each page begins with a short paragraph, which says for whom the page is, and gives its answer.
func TestIntroductions(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	for _, pattern := range []string{"docs/*.md", "docs/guides/*.md"} {
		pages, err := fs.Glob(root, pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		for _, page := range pages {
			if strings.HasSuffix(page, translated) {
				continue
			}
			text, err := fs.ReadFile(root, page)
			if err != nil {
				t.Fatal(err)
			}
			if fault := checkIntroduction(string(text)); fault != "" {
				t.Errorf("%s: %s", page, fault)
			}
		}
	}
}

// notProse matches the first line of something that is not a paragraph: a heading, a list, a table, code, a picture or a comment.
var notProse = regexp.MustCompile("^(#|[-*] |\\d+\\. |\\||```|!\\[|<)")

// checkIntroduction returns what is wrong with the paragraph below the title of a page.
func checkIntroduction(text string) string {
	title, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(title, "# ") || rest != "" && rest[0] != '\n' {
		return "begin with a title, such as '# Finalizers', and an empty line"
	}
	paragraph, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	words := len(strings.Fields(paragraph))
	switch {
	case words == 0 || notProse.MatchString(paragraph):
		return "write below the title, before anything else, one or two sentences: whom the page is for, and its answer in short"
	case words > mostWords:
		return fmt.Sprintf("the first paragraph has %d words; say in at most %d whom the page is for and its answer in short, and begin another paragraph", words, mostWords)
	}
	return ""
}

func TestCheckIntroduction(t *testing.T) {
	const sentence = "For authors of operators: call it first."
	tests := map[string]struct {
		reason string
		text   string
		fault  string // a part of the message; empty for no fault
	}{
		"Introduced": {"a paragraph below the title", "# Finalizers\n\n" + sentence + "\n\n## Rules\n", ""},
		"NoTitle":    {"the title is first", sentence + "\n\n# Finalizers\n", "begin with a title"},
		"TwoLines":   {"a title stands alone", "# Finalizers\n" + sentence + "\n\nMore.\n", "begin with a title"},
		"Nothing":    {"a page that ends", "# Finalizers\n", "whom the page is for"},
		"Heading":    {"a section comes first", "# Finalizers\n\n## Rules\n\n" + sentence + "\n", "whom the page is for"},
		"Table":      {"a table comes first", "# Finalizers\n\n| a | b |\n| --- | --- |\n\n" + sentence + "\n", "whom the page is for"},
		"Code":       {"code comes first", "# Finalizers\n\n```go\n```\n\n" + sentence + "\n", "whom the page is for"},
		"Bold":       {"a paragraph may begin with an emphasis", "# Finalizers\n\n**Call it first.**\n", ""},
		"Long":       {"a paragraph that nobody reads at a glance", "# Finalizers\n\n" + strings.Repeat("word ", mostWords+1) + "\n\n## Rules\n", "has 61 words"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := checkIntroduction(tc.text); (got == "") != (tc.fault == "") || !strings.Contains(got, tc.fault) {
				t.Errorf("%s: got %q, want %q in it", tc.reason, got, tc.fault)
			}
		})
	}
}
