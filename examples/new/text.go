package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// renaming replaces the names of an example by the names of its copy.
//
// The kind in lower case is the difficult one: memcached is also what the pods of a Memcached run, and cache is also a
// package of controller-runtime. It is renamed where it can only be the kind: in identifiers, beside the group, and in
// names with hyphens, such as memcached-operator, before the word operator, and as the value of the label labelName.
// Everywhere else it stays. The plural is always the kind, except for a plural that is a group of Kubernetes.
type renaming struct {
	from, to *names
	// words are the identifiers of the example that contain its kind, with what they become. Comments and strings mention them.
	words map[string]string
	// kept is true if a package other than the API's declares the kind's name for something else.
	kept bool
}

// labelName is the label whose value package ownedresources makes from the kind.
const labelName = "app.kubernetes.io/name"

// reserved are plurals that mean something else when they stand alone.
var reserved = map[string]bool{"apps": true}

var (
	compound = regexp.MustCompile(`[A-Za-z0-9]+(?:[._/-][A-Za-z0-9]+)*`)
	word     = regexp.MustCompile(`[A-Za-z0-9]+`)
	part     = regexp.MustCompile(`[A-Za-z0-9-]+`)
	article  = regexp.MustCompile(`\b([Aa])n? ([A-Z][A-Za-z0-9]*)\b`)
)

// text returns a comment, a string or a manifest with the names of the copy.
func (r *renaming) text(s string) string {
	var b strings.Builder
	end := 0
	for _, at := range compound.FindAllStringIndex(s, -1) {
		b.WriteString(s[end:at[0]])
		end = at[1]
		b.WriteString(r.compound(s[at[0]:end], strings.HasPrefix(s[end:], "-")))
	}
	b.WriteString(s[end:])
	renamed := strings.ReplaceAll(b.String(), " "+r.from.lower+" operator", " "+r.to.lower+" operator")
	renamed = strings.ReplaceAll(renamed, labelName+"="+r.from.lower, labelName+"="+r.to.lower)
	if renamed == s {
		return s
	}
	return article.ReplaceAllStringFunc(renamed, r.article)
}

// article returns "a Shop" for "an Shop".
func (r *renaming) article(found string) string {
	letter, kind, _ := strings.Cut(found, " ")
	if !strings.HasPrefix(kind, r.to.kind) {
		return found
	}
	letter = letter[:1]
	if strings.ContainsRune("AEIO", rune(kind[0])) {
		letter += "n"
	}
	return letter + " " + kind
}

// compound returns words that are joined by dots, slashes, hyphens or underscores with the names of the copy. open is true if a
// hyphen follows them.
func (r *renaming) compound(s string, open bool) string {
	if i := strings.Index(s, r.from.group); i >= 0 {
		end := i + len(r.from.group)
		if (i == 0 || !isWord(s[i-1])) && (end == len(s) || !isWord(s[end])) {
			return r.besideGroup(s[:i]) + r.to.group + r.besideGroup(s[end:])
		}
	}
	if before, after, ok := strings.Cut(s, r.from.webhookPath()); ok {
		return before + r.to.webhookPath() + after
	}
	s = strings.ReplaceAll(s, r.from.sample(), r.to.sample())
	at := 0
	return part.ReplaceAllStringFunc(s, func(p string) string {
		at += strings.Index(s[at:], p) + len(p)
		hyphens := strings.Contains(p, "-") || open && at == len(s)
		return word.ReplaceAllStringFunc(p, func(w string) string { return r.word(w, hyphens) })
	})
}

// besideGroup returns what stands beside the group, such as the plural, the version, or the rest of an annotation's key.
func (r *renaming) besideGroup(s string) string {
	return word.ReplaceAllStringFunc(s, func(w string) string {
		switch w {
		case r.from.version:
			return r.to.version
		case r.from.plural:
			return r.to.plural
		case r.from.lower:
			return r.to.lower
		}
		return r.word(w, false)
	})
}

func (r *renaming) word(w string, hyphens bool) string {
	switch {
	case w == r.from.kind:
		return r.to.kind
	case w == r.from.plurals():
		return r.to.plurals()
	case w == r.from.plural && !reserved[w]:
		return r.to.plural
	case w == r.from.lower && hyphens:
		return r.to.lower
	case w == r.from.alias:
		return r.to.alias
	case w == sentenceStart(r.from.lower):
		return sentenceStart(r.to.lower)
	}
	if renamed, ok := r.words[w]; ok {
		return renamed
	}
	return w
}

// sentenceStart returns the name of the program at the start of a sentence: Databaseuser is the operator of kind DatabaseUser.
func sentenceStart(lower string) string { return strings.ToUpper(lower[:1]) + lower[1:] }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// identifier returns an identifier with the kind of the copy: shopPods for memcachedPods, labelShop for labelMemcached.
func (r *renaming) identifier(name string) string {
	var b strings.Builder
	for rest := name; rest != ""; {
		replaced, length := r.atStart(rest, rest == name)
		if length == 0 {
			_, length = utf8.DecodeRuneInString(rest)
			replaced = rest[:length]
		}
		b.WriteString(replaced)
		rest = rest[length:]
	}
	return b.String()
}

// atStart returns what replaces the kind at the start of s, and the length of what it replaces, or 0 if the kind is not there.
func (r *renaming) atStart(s string, first bool) (replaced string, length int) {
	forms := [][2]string{{r.from.plurals(), r.to.plurals()}, {r.from.kind, r.to.kind}}
	if first {
		forms = append(forms,
			[2]string{unexported(r.from.plurals()), unexported(r.to.plurals())}, [2]string{unexported(r.from.kind), unexported(r.to.kind)},
			[2]string{r.from.plural, r.to.plural}, [2]string{r.from.lower, r.to.lower})
	}
	for _, form := range forms {
		if rest, ok := strings.CutPrefix(s, form[0]); ok {
			if next, _ := utf8.DecodeRuneInString(rest); !unicode.IsLower(next) {
				return form[1], len(form[0])
			}
		}
	}
	return "", 0
}

// unexported returns a name that begins with a capital letter as the name of a variable: databaseUser for DatabaseUser.
func unexported(name string) string {
	upper := 0
	for upper < len(name) && unicode.IsUpper(rune(name[upper])) {
		upper++
	}
	if upper > 1 && upper < len(name) && unicode.IsLower(rune(name[upper])) {
		upper-- // HTTPServer becomes httpServer
	}
	return strings.ToLower(name[:upper]) + name[upper:]
}
