package accounts

import (
	"slices"
	"strings"
)

// grantLine is a line of SHOW GRANTS, either of a role or of privileges.
type grantLine struct {
	role             string
	privileges       []string
	database, object string // * for all
	quoted           bool   // the database is a name, and not *
	grantable        bool   // WITH GRANT OPTION
}

// parseGrantLine parses a line such as
//
//	GRANT SELECT, INSERT (`id`) ON `shop`.`items` TO `bob`@`%` WITH GRANT OPTION
//	GRANT `admin` TO `bob`@`%`
//	SET DEFAULT ROLE `admin` FOR `bob`@`%`
//
// It returns false for all others.
func parseGrantLine(line string) (g grantLine, ok bool) {
	words := tokens(line)
	if after, isDefault := skip(words, "SET", "DEFAULT", "ROLE"); isDefault && len(after) > 0 {
		return grantLine{role: after[0].text}, true
	}
	words, ok = skip(words, "GRANT")
	on := max(slices.Index(words, token{text: "ON"}), 0)
	to := slices.Index(words[on:], token{text: "TO"}) + on
	if !ok || to <= on {
		return g, false
	}
	if on == 0 {
		return grantLine{role: words[0].text}, true
	}
	g.privileges = privilegesOf(words[:on])
	g.grantable = containsRun(words[to:], "GRANT", "OPTION")
	if slices.Contains(g.privileges, "PROXY") {
		return g, true
	}
	object := words[on+1 : to]
	for len(object) > 3 && !object[0].quoted { // PROCEDURE, FUNCTION, PACKAGE BODY
		object = object[1:]
	}
	if len(object) != 3 || object[1] != (token{text: "."}) || len(g.privileges) == 0 {
		return g, false
	}
	g.database, g.quoted, g.object = object[0].text, object[0].quoted, object[2].text
	return g, true
}

// privilegesOf returns the privileges of a list, without the columns in parentheses.
func privilegesOf(words []token) []string {
	var all []string
	var name []string
	depth := 0
	for _, w := range append(slices.Clone(words), token{text: ","}) {
		switch {
		case w == token{text: "("}:
			depth++
		case w == token{text: ")"}:
			depth--
		case depth > 0:
		case w == token{text: ","}:
			all, name = append(all, strings.ToUpper(strings.Join(name, " "))), nil
		default:
			name = append(name, w.text)
		}
	}
	return all
}

// isLocked reports whether a line of SHOW CREATE USER is of an account that is locked.
func isLocked(line string) bool { return containsRun(tokens(line), "ACCOUNT", "LOCK") }

// token is a name, a literal, a word or a punctuation mark.
type token struct {
	text   string
	quoted bool
}

func skip(words []token, first ...string) ([]token, bool) {
	if len(words) < len(first) || !containsRun(words[:len(first)], first...) {
		return words, false
	}
	return words[len(first):], true
}

// containsRun reports whether unquoted words follow each other.
func containsRun(words []token, run ...string) bool {
	for i := range words {
		if i+len(run) <= len(words) && slices.EqualFunc(words[i:i+len(run)], run, func(t token, word string) bool { return t == token{text: word} }) {
			return true
		}
	}
	return false
}

// tokens splits a line of the server. Names are between ` or ", and literals between '; between them the same mark stands for
// itself if it is doubled. All sessions have the mode NO_BACKSLASH_ESCAPES.
func tokens(line string) []token {
	var all []token
	for line != "" {
		switch c := line[0]; {
		case c == ' ':
			line = line[1:]
		case strings.IndexByte("`\"'", c) >= 0:
			var text string
			text, line = unquote(line[1:], c)
			all = append(all, token{text, true})
		case strings.IndexByte("(),.@*", c) >= 0:
			all, line = append(all, token{text: line[:1]}), line[1:]
		default:
			end := strings.IndexAny(line, " `\"'(),.@*")
			if end < 0 {
				end = len(line)
			}
			all, line = append(all, token{text: line[:end]}), line[end:]
		}
	}
	return all
}

// unquote returns the text before the closing mark, and what follows.
func unquote(line string, mark byte) (text, rest string) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] == mark {
			if i+1 == len(line) || line[i+1] != mark {
				return b.String(), line[i+1:]
			}
			i++
		}
		b.WriteByte(line[i])
	}
	return b.String(), ""
}
