package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check returns which imports of the module's packages break the rules, and which rules allow an import of a package that is not in a lower
// layer.
func check(rules []rule, graph map[string][]string) (violations []string) {
	for i, r := range rules {
		for _, allowed := range r.ours {
			if !slices.ContainsFunc(rules[i+1:], func(below rule) bool { return below.pkg == allowed }) {
				violations = append(violations, fmt.Sprintf("the rule of package %s allows %s, which does not stand below it in internal/imports: "+
					"imports point down", r.pkg, allowed))
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.pkg == pkg })
		if i < 0 {
			violations = append(violations, fmt.Sprintf("package %s has no rule: say in internal/imports what it may import, and why", pkg))
			continue
		}
		violations = append(violations, checkOurs(rules, rules[i], graph[pkg])...)
		if !isInternal(pkg) && !rules[i].helpsTests {
			violations = append(violations, follow(rules, rules[i], graph, pkg, nil)...)
		}
	}
	return violations
}

// checkOurs checks a package's own imports of other packages of this module.
func checkOurs(rules []rule, r rule, imports []string) (violations []string) {
	for _, imported := range imports {
		pkg, isOurs := ours(imported)
		if isOurs && (!slices.Contains(r.ours, pkg) || helpsTests(rules, pkg) && !r.helpsTests) {
			violations = append(violations, violation(r, []string{r.pkg}, imported))
		}
	}
	return violations
}

// follow checks what a public package imports through internal packages. The rule of the public package must allow these imports too.
func follow(rules []rule, r rule, graph map[string][]string, pkg string, via []string) (violations []string) {
	via = append(slices.Clone(via), pkg)
	for _, imported := range graph[pkg] {
		inside, isOurs := ours(imported)
		switch {
		case isOurs && isInternal(inside) && !helpsTests(rules, inside):
			violations = append(violations, follow(rules, r, graph, inside, via)...)
		case isOurs && len(via) == 1: // checkOurs has checked it
		case !isOurs && !r.allowsExternal(imported), isOurs && !slices.Contains(r.ours, inside):
			violations = append(violations, violation(r, via, imported))
		}
	}
	return violations
}

func violation(r rule, via []string, imported string) string {
	subject := "package " + via[0]
	if len(via) > 1 {
		subject += ", through " + strings.Join(via[1:], ", ") + ","
	}
	return fmt.Sprintf("%s imports %s, which its rule in internal/imports does not allow (%s): "+
		"move the code that needs it, or decide to allow it there", subject, imported, r.reason)
}

func (r rule) allowsExternal(imported string) bool {
	return !isBelow(testLibraries, imported) && (isStandard(imported) || isBelow(r.external, imported))
}

// ours returns the path of an imported package inside of this module. If the package belongs to another module, isOurs is false.
func ours(imported string) (pkg string, isOurs bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func helpsTests(rules []rule, pkg string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.pkg == pkg && r.helpsTests })
}

func isBelow(roots []string, imported string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}

func isInternal(pkg string) bool { return strings.HasPrefix(pkg, "internal/") }

// isStandard reports whether a package belongs to the standard library. All other paths begin with a domain name.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// TestCheck proves that TestImports can fail: it calls check with imports and rules that break the order.
func TestCheck(t *testing.T) {
	rules := []rule{
		{pkg: "rig", ours: []string{"top", "internal/rig"}, helpsTests: true, reason: "helps tests"},
		{pkg: "careless", ours: []string{"internal/rig"}, external: []string{"testing"}, reason: "allows itself what helps tests"},
		{pkg: "internal/rig", helpsTests: true, reason: "helps tests"},
		{pkg: "top", ours: []string{"leaf"}, reason: "stands on leaf"},
		{pkg: "leaf", ours: []string{"internal/tool", "internal/a"}, external: []string{"example.com/allowed"}, reason: "a leaf"},
		{pkg: "internal/tool", reason: "a tool"},
		{pkg: "internal/a", ours: []string{"internal/b"}, reason: "uses b"},
		{pkg: "internal/b", ours: []string{"other"}, reason: "uses other"},
		{pkg: "other", reason: "another leaf"},
	}
	const doesNotAllow = ", which its rule in internal/imports does not allow "
	const whatToDo = ": move the code that needs it, or decide to allow it there"
	tests := map[string]struct {
		reason string
		rules  []rule // nil for the rules above
		graph  map[string][]string
		want   []string
	}{
		"Allowed": {
			reason: "the standard library, an allowed root and all below it, an allowed block, a harmless internal package",
			graph: map[string][]string{
				"leaf":          {"strings", "example.com/allowed/sub", module + "/internal/tool"},
				"internal/tool": {"example.com/allowed"},
				"top":           {module + "/leaf"},
				"rig":           {module + "/top", "example.com/anything"},
			},
		},
		"External": {
			reason: "a root that starts alike is another root",
			graph:  map[string][]string{"leaf": {"example.com/allowed-not"}},
			want:   []string{`package leaf imports example.com/allowed-not` + doesNotAllow + `(a leaf)` + whatToDo},
		},
		"Block": {
			reason: "leaves never import each other",
			graph:  map[string][]string{"leaf": {module + "/other"}, "other": nil},
			want:   []string{`package leaf imports ` + module + `/other` + doesNotAllow + `(a leaf)` + whatToDo},
		},
		"Indirect": {
			reason: "an internal package is no way around the rule",
			graph: map[string][]string{
				"leaf":       {module + "/internal/a"},
				"internal/a": {module + "/internal/b"},
				"internal/b": {module + "/other"},
			},
			want: []string{`package leaf, through internal/a, internal/b, imports ` + module + `/other` + doesNotAllow + `(a leaf)` + whatToDo},
		},
		"IndirectExternal": {
			reason: "what an internal package imports from outside counts for the package above it",
			graph: map[string][]string{
				"leaf":          {module + "/internal/tool"},
				"internal/tool": {"example.com/other"},
			},
			want: []string{`package leaf, through internal/tool, imports example.com/other` + doesNotAllow + `(a leaf)` + whatToDo},
		},
		"Internal": {
			reason: "internal packages have rules of their own",
			graph:  map[string][]string{"internal/tool": {module + "/internal/a"}, "internal/a": nil},
			want:   []string{`package internal/tool imports ` + module + `/internal/a` + doesNotAllow + `(a tool)` + whatToDo},
		},
		"HelpsTests": {
			reason: "no rule can allow what only tests need",
			graph:  map[string][]string{"careless": {module + "/internal/rig"}, "leaf": {module + "/internal/rig"}, "internal/rig": nil},
			want: []string{
				`package careless imports ` + module + `/internal/rig` + doesNotAllow + `(allows itself what helps tests)` + whatToDo,
				`package leaf imports ` + module + `/internal/rig` + doesNotAllow + `(a leaf)` + whatToDo,
			},
		},
		"TestLibrary": {
			reason: "no rule can allow a library for tests",
			graph:  map[string][]string{"careless": {"testing"}},
			want:   []string{`package careless imports testing` + doesNotAllow + `(allows itself what helps tests)` + whatToDo},
		},
		"Unknown": {
			reason: "a new package needs a decision",
			graph:  map[string][]string{"new": nil, "internal/new": nil},
			want: []string{
				`package internal/new has no rule: say in internal/imports what it may import, and why`,
				`package new has no rule: say in internal/imports what it may import, and why`,
			},
		},
		"Up": {
			reason: "no rule can allow an import that points up",
			rules:  []rule{{pkg: "top"}, {pkg: "bottom", ours: []string{"top"}}},
			want:   []string{`the rule of package bottom allows top, which does not stand below it in internal/imports: imports point down`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.rules == nil {
				tc.rules = rules
			}
			if diff := cmp.Diff(tc.want, check(tc.rules, tc.graph)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
