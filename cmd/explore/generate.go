package main

import (
	"fmt"
	"go/format"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// generator writes the test of a package with reconcilers.
type generator struct {
	m          *module
	p          *pkg
	program    *program // the program whose start is being written
	found      *manifests
	names      *names
	statements []string            // the body of Start
	declared   map[variable]string // the variables of main packages that Start declares, and their names in Start
	suffixes   []string            // the ends of function names, one for each main package
	tests      []string            // names of the tests
	constants  map[typeRef]string  // the name of the constant with the manifest of each kind
	summary    []string            // lines of the report about what was found
	missing    []string            // kinds without a definition
}

// generate returns a generator for a package that has reconcilers.
func (m *module) generate(p *pkg, found *manifests) *generator {
	return &generator{m: m, p: p, found: found, names: newNames(), constants: map[typeRef]string{}}
}

func lowerFirst(name string) string {
	r := []rune(name)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// alias returns the name by which the test imports a package of kinds, such as corev1 or cachev1alpha1.
func (t typeRef) alias() string {
	base := path.Base(t.path)
	if len(base) > 1 && base[0] == 'v' && unicode.IsDigit(rune(base[1])) {
		base = path.Base(path.Dir(t.path)) + base
	}
	return regexp.MustCompile(`\W`).ReplaceAllString(base, "")
}

// kinds returns the kinds that the reconcilers of the package reconcile or watch, each once.
func (p *pkg) kinds() []typeRef {
	kinds := []typeRef{}
	for _, r := range p.reconcilers {
		for _, kind := range r.primary {
			kinds = appendNew(kinds, kind)
		}
	}
	for _, r := range p.reconcilers {
		for _, kind := range r.watched {
			kinds = appendNew(kinds, kind)
		}
	}
	return kinds
}

const header = `package %s_test

import (
%s)

// exploreScheme has the types of the operator.
func exploreScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
%s	return scheme
}
`

// startCode is the template of the function that starts the operator. Its values are the suffix of the names, what the function does, and
// its statements.
const startCode = `
// exploreStart%[1]s sets up a process of the operator, as %[2]s. It is called again after each crash.
func exploreStart%[1]s(p *reconciletest.Process) error {
%[3]s
	return nil
}
`

// exploreCode is the template of the function that explores the operator. Its values are the suffix of the names, and the field CRDs.
const exploreCode = `
// explore%[1]s tries every fault at every point of a run. Run one test alone with -run, and set Options.WithoutFaults while you write
// a scenario.
func explore%[1]s(t *testing.T, actions ...reconciletest.Action) {
	t.Helper()
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: exploreScheme(),
%[2]s		Start: exploreStart%[1]s,
		Actions: actions,
	})
}
`

const objectCode = `
// exploreObject returns the object of a manifest.
func exploreObject(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.ToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return obj
}
`

// fixed are the packages that every test imports, each with a name that the test uses.
const fixed = " testing.T reconciletest.P unstructured.U yaml.T"

// file returns the content of the test file.
func (g *generator) file() ([]byte, error) {
	for imported, name := range map[string]string{
		"testing": "testing", "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured": "unstructured", "k8s.io/apimachinery/pkg/runtime": "runtime",
		"k8s.io/apimachinery/pkg/util/yaml": "yaml", libraryPath + "/reconcile/reconciletest": "reconciletest",
		"k8s.io/apimachinery/pkg/util/runtime": "utilruntime", "k8s.io/client-go/kubernetes/scheme": "clientgoscheme",
	} {
		g.names.use(imported, name)
	}
	g.names.use(g.p.path, g.p.name)
	schemes := []string{"utilruntime.Must(clientgoscheme.AddToScheme(scheme))\n"}
	for _, added := range g.m.schemes(g.p) {
		schemes = append(schemes, "utilruntime.Must("+g.names.use(added.path, added.alias())+"."+added.name+"(scheme))\n")
	}
	starts, explores, tests := g.sections()
	if len(g.tests) == 0 {
		g.tests = append(g.tests, "TestExplore")
		tests += "\nfunc TestExplore(t *testing.T) {\n" + fillIn("what a user does, such as reconciletest.Create(obj)") + "\nexplore" + g.suffixes[0] + "(t)\n}\n"
	}
	before := fmt.Sprintf(header, g.p.name, "%s", strings.Join(schemes, "")) + starts
	body := before + explores + objectCode + tests
	var imports strings.Builder
	for _, standard := range []bool{true, false} {
		for _, imported := range slices.Sorted(maps.Keys(g.names.imports)) {
			first, _, _ := strings.Cut(imported, "/")
			if name := g.names.imports[imported]; usesPackage(before+fixed, name) && standard != strings.Contains(first, ".") {
				if name == path.Base(imported) {
					name = ""
				}
				fmt.Fprintf(&imports, "%s %q\n", name, imported)
			}
		}
		if standard {
			imports.WriteString("\n")
		}
	}
	return format.Source([]byte(strings.Replace(body, "%s", imports.String(), 1)))
}

// sections returns the code of three kinds of functions: functions that start the operator, functions that explore it, and tests. There is
// one function of each kind for each main package, or tests for each kind. Main packages that start the operator in the same way share
// theirs. If there is only one main package, or none, the functions have no suffix.
func (g *generator) sections() (starts, explores, tests string) {
	programs := g.m.programs(g.p)
	statements, names := make([]string, len(programs)), map[string][]string{}
	for i, program := range programs {
		g.program = program
		name := "main"
		if len(programs) > 1 {
			name = g.m.relative(program.main.dir)
		}
		statements[i] = g.start()
		names[statements[i]] = append(names[statements[i]], name)
	}
	for i, start := range statements {
		if slices.Contains(statements[:i], start) {
			continue
		}
		g.program = programs[i]
		suffix := ""
		if len(programs) > 1 {
			suffix = suffixOf(g.program.main, g.suffixes)
		}
		g.suffixes = append(g.suffixes, suffix)
		does := " does"
		if len(names[start]) > 1 {
			does = " do"
		}
		starts += fmt.Sprintf(startCode, suffix, strings.Join(names[start], " and ")+does, start)
		explores += fmt.Sprintf(exploreCode, suffix, g.found.field(g.p.dir))
		for _, kind := range g.program.reconciled() {
			tests += g.test(kind, suffix)
		}
	}
	return starts, explores, tests
}

// start returns the statements that start the operator. The names of their variables are free again afterwards.
func (g *generator) start() string {
	forget := g.names.remember()
	g.statements, g.declared = nil, map[variable]string{}
	g.wireAll()
	forget()
	start := strings.TrimPrefix(strings.Join(g.statements, "\n"), "\n")
	if regexp.MustCompile(`\bmgr\b`).MatchString(withoutComments(start)) {
		start = "mgr := p.Manager()\n\n" + start
	}
	return start
}

// withoutComments returns code without its comments.
func withoutComments(code string) string {
	return regexp.MustCompile(`(?m)^\s*//.*`).ReplaceAllString(code, "")
}

// usesPackage reports whether code uses a field, method, function or type of the package or the variable with this name.
func usesPackage(code, name string) bool {
	code = regexp.MustCompile(`//.*`).ReplaceAllString(code, "")
	return regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(name) + `\.[A-Z]`).MatchString(code)
}

// field returns the code of the field CRDs, for a scenario in a test in the folder.
func (f *manifests) field(dir string) string {
	if len(f.crdFiles) == 0 {
		return fillIn("CRDs: the files of the custom resource definitions; write them with make manifests") + "\n"
	}
	var files []string
	for _, file := range f.crdFiles {
		if rel, err := filepath.Rel(dir, file); err == nil {
			files = append(files, fmt.Sprintf("%q", filepath.ToSlash(rel)))
		}
	}
	if len(files) > 1 {
		return "CRDs: []string{\n" + strings.Join(files, ",\n") + ",\n},\n"
	}
	return "CRDs: []string{" + files[0] + "},\n"
}
