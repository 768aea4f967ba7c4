package main

import (
	"go/ast"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// selection is what is copied of the embedded source.
type selection struct {
	goFiles []*goFile // the Go files of the example, and of the folder internal
	others  map[string][]byte
}

// selectFiles returns the files of an example that are copied: the operator with the tests beside its code; of the folder test the
// lifecycle test and the files that it needs; and of the folder internal the files that these tests need. Not copied are tests of
// an upgrade, which start from what an older version of the example left, what the copy gets from the templates instead, and the conversion
// between versions of the API.
func selectFiles(source fs.FS, n *names) (*selection, error) {
	example := n.lower
	s := &selection{others: map[string][]byte{}}
	var tests []*goFile
	err := fs.WalkDir(source, example, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		base := path.Base(name)
		if strings.HasPrefix(base, "upgrade") || path.Dir(name) == example && !strings.HasSuffix(base, ".go") {
			return nil
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(base, ".go") {
			s.others[name] = text
			return nil
		}
		f, err := parse(name, text)
		if path.Dir(name) == example+"/test" {
			tests = append(tests, f)
		} else {
			s.goFiles = append(s.goFiles, f)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.goFiles = append(s.goFiles, needed(tests, nil, func(f *goFile) bool {
		return path.Base(f.name) == "lifecycle_test.go" || path.Base(f.name) == "main_test.go"
	})...)
	if err := s.leaveOutConversion(n); err != nil {
		return nil, err
	}
	return s, s.addShared(source)
}

// addShared adds what the files import of the folder internal, and what that imports in turn.
func (s *selection) addShared(source fs.FS) error {
	added := map[string]bool{}
	for i := 0; i < len(s.goFiles); i++ {
		for _, imported := range s.goFiles[i].imports {
			name, ok := strings.CutPrefix(imported, modulePath+"/internal/")
			if !ok || added[name] {
				continue
			}
			added[name] = true
			files, err := parseFolder(source, "internal/"+name)
			if err != nil {
				return err
			}
			used, called := map[string]bool{}, map[string]bool{}
			for _, f := range s.goFiles {
				for local, imported := range f.imports {
					if imported == modulePath+"/internal/"+name {
						maps.Copy(used, selected(f, local))
						maps.Copy(called, selected(f, ""))
					}
				}
			}
			files = needed(files, called, func(f *goFile) bool {
				return f.syntax.Doc != nil || intersect(topLevel(f.syntax), used)
			})
			trimDoc(files)
			s.goFiles = append(s.goFiles, files...)
		}
	}
	return nil
}

// parseFolder parses the files of a package, without its tests.
func parseFolder(source fs.FS, folder string) (files []*goFile, err error) {
	names, err := fs.Glob(source, folder+"/*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return nil, err
		}
		f, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// selected returns the names that a file selects of a package that it imports, or, without one, of values.
func selected(f *goFile, local string) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			of := ""
			if x, isIdent := selector.X.(*ast.Ident); isIdent && f.imports[x.Name] != "" {
				of = x.Name
			}
			if of == local {
				names[selector.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

// needed returns the files of a package that have what is wanted, and those that these need: which declare a name that a needed
// file uses, or a method of a type of a needed file that a needed file calls, or that is one of called.
func needed(files []*goFile, called map[string]bool, wanted func(*goFile) bool) []*goFile {
	need := map[*goFile]bool{}
	names, types, calls := map[string]bool{}, map[string]bool{}, map[string]bool{}
	maps.Copy(calls, called)
	add := func(f *goFile) {
		need[f] = true
		for _, ident := range f.syntax.Unresolved {
			names[ident.Name] = true
		}
		maps.Copy(calls, selected(f, ""))
		maps.Copy(types, topLevel(f.syntax))
	}
	for _, f := range files {
		if wanted(f) {
			add(f)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, f := range files {
			if !need[f] && (intersect(topLevel(f.syntax), names) || hasMethod(f, types, calls)) {
				add(f)
				grown = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(f *goFile) bool { return !need[f] })
}

// hasMethod reports whether a file declares one of some methods of one of some types.
func hasMethod(f *goFile, types, methods map[string]bool) bool {
	return slices.ContainsFunc(f.syntax.Decls, func(decl ast.Decl) bool {
		function, ok := decl.(*ast.FuncDecl)
		return ok && function.Recv != nil && types[receiverName(function)] && methods[function.Name.Name]
	})
}

func intersect(a, b map[string]bool) bool {
	for name := range a {
		if b[name] {
			return true
		}
	}
	return false
}
