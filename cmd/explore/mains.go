package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// program is what main does for a package of reconcilers: one main package with what it imports from the module, or all of the module.
type program struct {
	m           *module
	p           *pkg
	main        *pkg          // nil: all
	reconcilers []*reconciler // the reconcilers that it sets up
}

// programs returns the programs that set up reconcilers of the package. If there are not several, the whole module counts as one.
func (m *module) programs(p *pkg) (found []*program) {
	for _, main := range m.sources() {
		if main.name != "main" || main == p || !slices.Contains(m.closure(main), p) {
			continue
		}
		one := &program{m: m, p: p, main: main}
		one.reconcilers = slices.DeleteFunc(slices.Clone(p.reconcilers), func(r *reconciler) bool { return !one.isSetUp(r) })
		if len(one.reconcilers) > 0 {
			found = append(found, one)
		}
	}
	if len(found) < 2 {
		return []*program{{m: m, p: p, reconcilers: p.reconcilers}}
	}
	return found
}

// sources returns the packages of the program, main packages first.
func (pr *program) sources() []*pkg {
	all := pr.m.sources()
	if pr.main == nil {
		return all
	}
	imported := pr.m.closure(pr.main)
	return slices.DeleteFunc(slices.Clone(all), func(p *pkg) bool { return !slices.Contains(imported, p) })
}

// closure returns a package, and the packages of the module that it imports, directly or by others.
func (m *module) closure(of *pkg) []*pkg {
	all := []*pkg{of}
	for i := 0; i < len(all); i++ {
		for _, s := range all[i].files {
			for _, spec := range s.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					continue
				}
				if p := m.parse(m.folderIn(imported)); p != nil && !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// isSetUp reports whether main makes a reconciler, or calls a function that sets it up.
func (pr *program) isSetUp(r *reconciler) bool {
	if slices.ContainsFunc(r.setups, func(s setup) bool { return !s.isMethod() && pr.isCalled(s) }) {
		return true
	}
	if r.constructor != nil && pr.isCalled(setup{fn: r.constructor, file: r.constructed}) {
		return true
	}
	literals, _ := pr.literals(typeRef{pr.p.path, r.name})
	return len(literals) > 0
}

// suffixOf names what the test has for a main package, by its folder: cmd/shop-manager becomes ShopManager. No other main package has taken it.
func suffixOf(main *pkg, taken []string) string {
	var b strings.Builder
	up := true
	for _, r := range filepath.Base(main.dir) {
		switch isLetter := unicode.IsLetter(r) || unicode.IsDigit(r); {
		case !isLetter:
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	name := b.String()
	for i := 2; slices.Contains(taken, name); i++ {
		name = b.String() + strconv.Itoa(i)
	}
	return name
}
