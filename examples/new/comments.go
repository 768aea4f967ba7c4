package main

import (
	"go/ast"
	"slices"
	"strings"
)

// comments renames in all comments. A comment on a declaration that keeps its name keeps its first word.
func (e *editor) comments() {
	keeps, root := e.ownComments()
	for _, group := range e.syntax.Comments {
		for _, c := range group.List {
			text := c.Text
			switch {
			case c == root:
				continue
			case keeps[c]:
				first := "// " + e.from.kind
				text = first + e.comment(strings.TrimPrefix(text, first))
			default:
				text = e.comment(text)
			}
			if c == group.List[0] && group.End() < e.syntax.Name.Pos() {
				text = strings.Replace(text, "// Package "+e.from.version+" ", "// Package "+e.to.version+" ", 1)
			}
			if text != c.Text {
				e.replace(c, text)
			}
		}
	}
}

// ownComments returns the comments on declarations that keep their names, and the marker of the resource.
func (e *editor) ownComments() (keeps map[*ast.Comment]bool, root *ast.Comment) {
	keeps = map[*ast.Comment]bool{}
	for _, decl := range e.syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Doc != nil && decl.Name.Name == e.from.kind && !e.isAPI(e.folder()) {
				keeps[decl.Doc.List[0]] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == e.from.kind && decl.Doc != nil && e.isAPI(e.folder()) {
					root = e.resource(decl.Doc)
				}
			}
		}
	}
	return keeps, root
}

func (e *editor) comment(text string) string {
	if marker, ok := strings.CutPrefix(text, "// +kubebuilder:rbac:"); ok {
		return "// +kubebuilder:rbac:" + e.rbac(marker)
	}
	if marker, ok := strings.CutPrefix(text, "// +kubebuilder:webhook:"); ok {
		return "// +kubebuilder:webhook:" + e.webhookMarker(marker)
	}
	if e.isAPI(e.folder()) || !e.kept {
		return e.renaming.text(text)
	}
	link := "[" + e.from.kind + "]" // which refers to what keeps the name
	parts := strings.Split(text, link)
	for i := range parts {
		parts[i] = e.renaming.text(parts[i])
	}
	return strings.Join(parts, link)
}

// rbac returns the arguments of an RBAC marker. The plural is the kind's only with the kind's group.
func (r *renaming) rbac(marker string) string {
	arguments := strings.Split(marker, ",")
	if !slices.Contains(arguments, "groups="+r.from.group) {
		return marker
	}
	for i, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		switch name {
		case "groups":
			value = r.to.group
		case "resources":
			value = strings.Join(r.resources(strings.Split(value, ";")), ";")
		}
		arguments[i] = name + "=" + value
	}
	return strings.Join(arguments, ",")
}

// webhookMarker returns the arguments of a marker of a webhook.
func (r *renaming) webhookMarker(marker string) string {
	arguments := strings.Split(marker, ",")
	for i, argument := range arguments {
		if argument == "versions="+r.from.version {
			arguments[i] = "versions=" + r.to.version
		} else {
			arguments[i] = r.text(argument)
		}
	}
	return strings.Join(arguments, ",")
}

// resources returns the names of resources and subresources of the group.
func (r *renaming) resources(names []string) []string {
	renamed := make([]string, len(names))
	for i, name := range names {
		plural, sub, found := strings.Cut(name, "/")
		if plural == r.from.plural {
			plural = r.to.plural
		}
		renamed[i] = plural
		if found {
			renamed[i] += "/" + sub
		}
	}
	return renamed
}

// resource replaces or adds the marker that names the resource of the kind, without the short names of the example's. It returns the
// comment that it has replaced.
func (e *editor) resource(doc *ast.CommentGroup) *ast.Comment {
	kept := []string{"// +kubebuilder:resource:path=" + e.to.plural}
	for _, c := range doc.List {
		arguments, ok := strings.CutPrefix(c.Text, "// +kubebuilder:resource:")
		if !ok {
			continue
		}
		for argument := range strings.SplitSeq(arguments, ",") {
			if !strings.HasPrefix(argument, "shortName=") && !strings.HasPrefix(argument, "path=") {
				kept = append(kept, argument)
			}
		}
		e.replace(c, strings.Join(kept, ","))
		return c
	}
	for _, c := range doc.List {
		if c.Text == "// +kubebuilder:object:root=true" {
			e.replace(c, c.Text+"\n"+kept[0])
			return c
		}
	}
	return nil
}
