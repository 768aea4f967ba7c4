package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// An example may have several versions of its API. The copy has one, made from the version that is stored, and nothing of the conversion.

// storageVersion returns the version that a CRD stores.
func storageVersion(source fs.FS, file string) (string, error) {
	text, err := fs.ReadFile(source, file)
	if err != nil {
		return "", err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name    string `json:"name"`
				Storage bool   `json:"storage"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return "", err
	}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name, nil
		}
	}
	return "", fmt.Errorf("%s: no version is stored", file)
}

// isOfConversion reports whether a file of an example belongs to the conversion between versions of its API.
func (n *names) isOfConversion(name string) bool {
	name = strings.TrimPrefix(name, n.lower+"/")
	if version, ok := strings.CutPrefix(path.Dir(name), "api/"); ok && version != n.version {
		return true
	}
	return strings.HasSuffix(name, ".go") && strings.HasPrefix(path.Base(name), "conversion")
}

// conversionFiles are the beginnings of paths in an example with several versions that are for their conversion.
var conversionFiles = []string{"/config/webhook/", "/config/install/", "/config/default/", "/test/testdata/crd_", "/test/testdata/v1alpha1."}

// The first lines of the overlay for the whole cluster: without the conversion, in the example, and as the copy has it.
const (
	notConverted = "# All that the operator needs besides the conversion, which config/default adds.\n"
	converted    = "# All that the operator needs: `make deploy IMG=...`.\n"
)

// leaveOutConversion removes the conversion from a selection: its files, and in the files beside them the statements and the fields that use
// what they declare.
func (s *selection) leaveOutConversion(n *names) error {
	left := map[string]map[string]bool{} // by folder, the names that are not declared any more
	var kept []*goFile
	for _, f := range s.goFiles {
		if !n.isOfConversion(f.name) {
			kept = append(kept, f)
			continue
		}
		if left[f.folder()] == nil {
			left[f.folder()] = map[string]bool{}
		}
		maps.Copy(left[f.folder()], topLevel(f.syntax))
		delete(left[f.folder()], "init")
	}
	if len(kept) == len(s.goFiles) {
		return nil
	}
	s.goFiles = kept
	for i, f := range kept {
		var err error
		if kept[i], err = withoutUses(f, left[f.folder()]); err != nil {
			return err
		}
	}
	maps.DeleteFunc(s.others, func(name string, _ []byte) bool {
		return slices.ContainsFunc(conversionFiles, func(begin string) bool { return strings.HasPrefix(name, n.lower+begin) })
	})
	for name, text := range maps.Clone(s.others) {
		if plain, ok := strings.CutPrefix(name, n.lower+"/config/without-conversion/"); ok {
			delete(s.others, name)
			s.others[n.lower+"/config/default/"+plain] = []byte(strings.Replace(string(text), notConverted, converted, 1))
		}
	}
	return nil
}

// withoutUses returns a file without the statements, and without the fields of literals, that use some names.
func withoutUses(f *goFile, names map[string]bool) (*goFile, error) {
	e := &editor{goFile: f}
	cut := map[ast.Node]bool{}
	var around []ast.Node
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		around = append(around, n)
		if ident, ok := n.(*ast.Ident); ok && names[ident.Name] {
			if use := smallest(around); use != nil && !cut[use] {
				cut[use] = true
				e.cutLines(use)
			}
		}
		return true
	})
	if len(cut) == 0 {
		return f, nil
	}
	return parse(f.name, e.apply())
}

// smallest returns the innermost statement of a block, or field of a literal, of nodes that are around one another. It is nil if there is none.
func smallest(around []ast.Node) ast.Node {
	for i := len(around) - 1; i > 0; i-- {
		switch around[i-1].(type) {
		case *ast.BlockStmt:
			return around[i]
		case *ast.CompositeLit:
			if _, isField := around[i].(*ast.KeyValueExpr); isField {
				return around[i]
			}
		}
	}
	return nil
}

// cutLines removes the lines of a node.
func (e *editor) cutLines(n ast.Node) {
	text := e.goFile.text
	from := bytes.LastIndexByte(text[:e.set.Position(n.Pos()).Offset], '\n') + 1
	to := e.set.Position(n.End()).Offset
	if end := bytes.IndexByte(text[to:], '\n'); end >= 0 {
		to += end + 1
	}
	e.edits = append(e.edits, edit{from: from, to: to})
}
