package main

import (
	"fmt"
	"regexp"
)

// marked is a part of the page that a run fills in. The text around it is written by hand.
var marked = regexp.MustCompile(`(?s)(<!-- figures: (\S+) -->\n).*?(<!-- end of figures -->)`)

// fill returns the page with the blocks between their marks. It returns an error if a mark has no block, or a block no mark.
func fill(page string, blocks map[string]string) (string, error) {
	used := map[string]bool{}
	var unknown error
	page = marked.ReplaceAllStringFunc(page, func(part string) string {
		groups := marked.FindStringSubmatch(part)
		block, found := blocks[groups[2]]
		if !found {
			unknown = fmt.Errorf("the page has a mark %q, of which there are no figures", groups[2])
		}
		used[groups[2]] = true
		return groups[1] + block + groups[3]
	})
	for name := range blocks {
		if !used[name] {
			return "", fmt.Errorf("the page has no mark <!-- figures: %s -->", name)
		}
	}
	return page, unknown
}
