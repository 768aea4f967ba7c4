package main

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// docLink is a reference of a comment to a name of its package: [Start], or [User.Gone].
var docLink = regexp.MustCompile(`\[([A-Z][A-Za-z0-9]*)(\.[A-Za-z0-9]+)?\]`)

// trimDoc removes from the lists in a package's comment the items about names that are declared in none of its files.
func trimDoc(files []*goFile) {
	declared := map[string]bool{}
	for _, f := range files {
		for name := range topLevel(f.syntax) {
			declared[name] = true
		}
	}
	for _, f := range files {
		if f.syntax.Doc == nil {
			continue
		}
		var item []*ast.Comment
		end := func() {
			var text strings.Builder
			for _, c := range item {
				text.WriteString(c.Text)
			}
			links := docLink.FindAllStringSubmatch(text.String(), -1)
			if slices.ContainsFunc(links, func(link []string) bool { return !declared[link[1]] }) {
				for _, c := range item {
					f.text = []byte(strings.Replace(string(f.text), c.Text+"\n", "", 1))
				}
			}
			item = nil
		}
		list := f.syntax.Doc.List
		for _, c := range list {
			switch {
			case strings.HasPrefix(c.Text, "//   - "):
				end()
				item = []*ast.Comment{c}
			case item != nil && strings.HasPrefix(c.Text, "//     "):
				item = append(item, c)
			default:
				end()
			}
		}
		end()
		if parsed, err := parse(f.name, f.text); err == nil {
			*f = *parsed
		}
	}
}
