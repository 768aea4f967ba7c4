package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check follows each public package's imports through internal packages and compares them with its rule.
func check(rules map[string]rule, graph map[string][]string) (violations []string) {
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		rule, known := rules[pkg]
		switch {
		case isInternal(pkg), rule.anything:
		case !known:
			violations = append(violations, fmt.Sprintf("package %s has no rule: say in internal/imports what it may import, and why", pkg))
		default:
			violations = append(violations, follow(rule, graph, pkg, nil)...)
		}
	}
	return violations
}

func follow(rule rule, graph map[string][]string, pkg string, via []string) (violations []string) {
	via = append(slices.Clone(via), pkg)
	for _, imported := range graph[pkg] {
		inside, isOurs := strings.CutPrefix(imported, module+"/")
		switch {
		case isOurs && isInternal(inside) && !isBelow(helpsTests, imported):
			violations = append(violations, follow(rule, graph, inside, via)...)
		case !rule.allows(imported):
			subject := "package " + via[0]
			if len(via) > 1 {
				subject += ", through " + strings.Join(via[1:], ", ") + ","
			}
			violations = append(violations, fmt.Sprintf("%s imports %s, which its rule in internal/imports does not allow (%s): "+
				"move the code that needs it, or decide to allow it there", subject, imported, rule.reason))
		}
	}
	return violations
}

func (r rule) allows(imported string) bool {
	if isBelow(helpsTests, imported) {
		return false
	}
	block, isOurs := strings.CutPrefix(imported, module+"/")
	return isStandard(imported) || isBelow(r.external, imported) || isOurs && slices.Contains(r.blocks, block)
}

func isBelow(roots []string, imported string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}

func isInternal(pkg string) bool { return strings.HasPrefix(pkg, "internal/") }

// isStandard relies on paths outside of the standard library beginning with a domain name.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// TestCheckFindsViolations proves TestImports by graphs that break the rules.
func TestCheckFindsViolations(t *testing.T) {
	rules := map[string]rule{
		"leaf":  {external: []string{"example.com/allowed"}, reason: "a leaf"},
		"other": {reason: "another leaf"},
		"top":   {blocks: []string{"leaf"}, reason: "stands on leaf"},
		"rig":   {anything: true, reason: "helps tests"},
	}
	tests := map[string]struct {
		reason string
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
			want:   []string{`package leaf imports example.com/allowed-not, which its rule in internal/imports does not allow (a leaf): move the code that needs it, or decide to allow it there`},
		},
		"Block": {
			reason: "leaves never import each other",
			graph:  map[string][]string{"leaf": {module + "/other"}, "other": nil},
			want:   []string{`package leaf imports ` + module + `/other, which its rule in internal/imports does not allow (a leaf): move the code that needs it, or decide to allow it there`},
		},
		"Indirect": {
			reason: "an internal package is no way around the rule",
			graph: map[string][]string{
				"leaf":       {module + "/internal/a"},
				"internal/a": {module + "/internal/b"},
				"internal/b": {module + "/other"},
			},
			want: []string{`package leaf, through internal/a, internal/b, imports ` + module + `/other, which its rule in internal/imports does not allow (a leaf): move the code that needs it, or decide to allow it there`},
		},
		"HelpsTests": {
			reason: "no rule can allow what only tests need",
			graph:  map[string][]string{"leaf": {module + "/internal/controlplane"}, "internal/controlplane": nil},
			want:   []string{`package leaf imports ` + module + `/internal/controlplane, which its rule in internal/imports does not allow (a leaf): move the code that needs it, or decide to allow it there`},
		},
		"Unknown": {
			reason: "a new package needs a decision",
			graph:  map[string][]string{"new": nil},
			want:   []string{`package new has no rule: say in internal/imports what it may import, and why`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check(rules, tc.graph)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
