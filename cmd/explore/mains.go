package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// sources returns the packages in which the generator looks for what main does: all of the module, or one main package and what it imports.
func (g *generator) sources() []*pkg {
	all := g.m.sources()
	if g.main == nil {
		return all
	}
	imported := g.m.closure(g.main)
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

// mains returns the main packages that set up reconcilers of the package, if there are several.
func (g *generator) mains() (found []*pkg) {
	for _, p := range g.m.sources() {
		if p.name == "main" && p != g.p && len(g.reconcilersOf(p)) > 0 {
			found = append(found, p)
		}
	}
	if len(found) < 2 {
		return nil
	}
	return found
}

// reconcilersOf returns the reconcilers of the package that a main package sets up.
func (g *generator) reconcilersOf(main *pkg) []*reconciler {
	if !slices.Contains(g.m.closure(main), g.p) {
		return nil
	}
	was := g.main
	defer func() { g.main = was }()
	g.main = main
	return slices.DeleteFunc(slices.Clone(g.p.reconcilers), func(r *reconciler) bool { return !g.isSetUp(r) })
}

// isSetUp reports whether main makes a reconciler, or calls a function that sets it up.
func (g *generator) isSetUp(r *reconciler) bool {
	if slices.ContainsFunc(r.setups, func(s setup) bool { return !s.isMethod() && g.isCalled(s) }) {
		return true
	}
	if r.constructor != nil && g.isCalled(setup{fn: r.constructor, file: r.constructed}) {
		return true
	}
	literals, _ := g.literalsInMain(typeRef{g.p.path, r.name})
	return len(literals) > 0
}

// suffixOf names what the test has for a main package, by its folder: cmd/shop-manager becomes ShopManager.
func (g *generator) suffixOf(main *pkg) string {
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
	for i := 2; slices.Contains(g.suffixes, name); i++ {
		name = b.String() + strconv.Itoa(i)
	}
	g.suffixes = append(g.suffixes, name)
	return name
}
