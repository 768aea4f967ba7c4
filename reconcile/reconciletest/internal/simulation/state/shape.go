package state

import (
	"regexp"
	"strings"
)

var (
	suffixes   = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5,}\b`) // the API server generates names with these letters
	words      = regexp.MustCompile(`[A-Za-z0-9]+`)
	apiVersion = regexp.MustCompile(`^v\d+(alpha|beta)\d+$`)
	stars      = regexp.MustCompile(`\*(-[*N])+`)
)

// Shape returns a text with N in place of numbers, and with a star in place of words with digits: web-* for web-x7k2p. Such words are often
// names that are random or numbered. Failures with the same cause have the same Shape.
func Shape(text string) string {
	text = words.ReplaceAllStringFunc(suffixes.ReplaceAllString(text, "-*"), func(word string) string {
		switch {
		case strings.Trim(word, "0123456789") == "":
			return "N"
		case len(word) < minRandom || !strings.ContainsAny(word, "0123456789") || apiVersion.MatchString(word):
			return word
		}
		return "*"
	})
	return stars.ReplaceAllString(text, "*")
}
