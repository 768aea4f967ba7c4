package main

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// test returns the code of the test of a kind for a main package. It also returns the constant with the test's object, unless another test
// has it already. If the kind has no definition, it returns a comment about what to fill in.
func (g *generator) test(kind typeRef, suffix string) string {
	obj, isSample := g.found.object(kind)
	if obj == nil {
		if strings.HasPrefix(kind.path, "k8s.io/api/") {
			return "\n" + fillIn("a test of "+kind.name+", a built-in kind, if users create it") + "\n"
		}
		if !slices.Contains(g.missing, kind.name) {
			g.missing = append(g.missing, kind.name)
		}
		return "\n" + fillIn("a test of "+kind.name+": there is no custom resource definition of it in the module") + "\n"
	}
	name := "TestExplore" + suffix + kind.name
	for slices.Contains(g.tests, name) {
		name += "2"
	}
	g.tests = append(g.tests, name)
	text, err := yaml.Marshal(obj)
	if err != nil {
		return "\n" + fillIn("a test of "+kind.name+": "+err.Error()) + "\n"
	}
	source, comment := "the sample", ""
	switch {
	case isSample:
	case g.found.isDefined(kind):
		source, comment = "an object with the required fields", fillIn("a valid object; what the module has no sample of is made from the required fields")+"\n"
	default:
		source, comment = "an object with a name", fillIn("the object, as your operator expects it")+"\n"
	}
	g.summary = append(g.summary, fmt.Sprintf("%s: %s of %v %s", name, source, obj["apiVersion"], kind.name))
	change := "// reconciletest.Change(obj, func(obj *unstructured.Unstructured) { … }),\n"
	if _, version := g.found.definition(kind); version != nil {
		if found := version.Schema.OpenAPIV3Schema.findChange(obj); found != nil {
			change = fmt.Sprintf("reconciletest.Change(obj, func(obj *unstructured.Unstructured) {\nutilruntime.Must(unstructured.SetNestedField(obj.Object, %s, %s))\n}),\n",
				found.value, quoted(found.path))
		}
	}
	constant, isKnown := g.constants[kind]
	if !isKnown {
		constant = "manifestOf" + strings.TrimPrefix(name, "TestExplore"+suffix)
		g.constants[kind] = constant
	}
	code := fmt.Sprintf(`
func %s(t *testing.T) {
	obj := exploreObject(t, %s)
	explore%s(t,
		reconciletest.Create(obj), // FILL IN if the status has a condition Ready or Available: .Then(reconciletest.Ready(obj))
		// FILL IN each change to which the operator reacts, in an action of its own
		%s		reconciletest.Delete(obj),
	)
}
`, name, constant, suffix, change)
	if isKnown {
		return code
	}
	return code + fmt.Sprintf("\n%sconst %s = %s\n", comment, constant, raw(string(text)))
}

func (f *manifests) isDefined(kind typeRef) bool {
	definition, _ := f.definition(kind)
	return definition != nil
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(all, ", ")
}

// raw returns the code of a raw string literal.
func raw(text string) string {
	return "`" + strings.ReplaceAll(text, "`", "` + \"`\" + `") + "`"
}
