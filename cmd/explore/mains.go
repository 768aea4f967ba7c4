package main

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// programs returns the programs that set up reconcilers of the package, one for each main package. If there is only one, it gets all
// reconcilers of the package. If there is none, the whole module counts as one program.
func (m *module) programs(p *pkg) (found []*program) {
	for _, main := range m.sources() {
		if main.name != "main" || main == p || !slices.Contains(m.closure(main), p) {
			continue
		}
		one := m.program(p, main)
		one.reconcilers = slices.DeleteFunc(slices.Clone(p.reconcilers), func(r *reconciler) bool { return !one.setsUp(r) })
		one.reconcilers = append(one.reconcilers, one.setUpByOthers()...)
		if len(one.reconcilers) > 0 {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 0:
		return []*program{m.program(p, nil)}
	case 1:
		return []*program{m.program(p, found[0].main)}
	}
	return found
}

// setUpByOthers returns the reconcilers that are set up only by a method of another reconciler.
func (pr *program) setUpByOthers() (found []*reconciler) {
	for _, r := range pr.reconcilers {
		if slices.Contains(found, r) {
			continue
		}
		for _, v := range pr.instances(r) {
			for _, c := range v.calls {
				for _, other := range c.reaches {
					if other != r && !pr.setsUp(other) && !slices.Contains(found, other) {
						found = append(found, other)
					}
				}
			}
		}
	}
	return found
}

// closure returns a package, and the packages of the module that it imports directly or indirectly.
func (m *module) closure(of *pkg) []*pkg {
	all := []*pkg{of}
	for i := 0; i < len(all); i++ {
		for _, s := range all[i].files {
			for _, spec := range s.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					continue
				}
				if p := m.packageOf(imported); p != nil && !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// suffixOf returns the suffix of a main package's functions in the test. It is made from the name of the package's folder: ShopManager for
// cmd/shop-manager. It differs from the suffixes in taken, and from the ends of other names in the test, such as exploreObject.
func suffixOf(main *pkg, taken []string) string {
	var b strings.Builder
	up := true
	for _, r := range path.Base(main.path) {
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
	first := b.String()
	if first == "" || first == "Object" || first == "Scheme" || strings.HasPrefix(first, "Start") {
		first = "Main" + first
	}
	name := first
	for i := 2; slices.Contains(taken, name); i++ {
		name = first + strconv.Itoa(i)
	}
	return name
}
