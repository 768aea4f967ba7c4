package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	mainHeader = "package main\n\nimport (\n\"os\"\nctrl \"sigs.k8s.io/controller-runtime\"\n\"example.com/x/controllers\"\n\"example.com/x/other\"\n)\n\n" +
		"func main() {\n\tmgr, _ := ctrl.NewManager(nil, ctrl.Options{})\n"
	controllersHeader = "package controllers\n\nimport (\n\"context\"\nctrl \"sigs.k8s.io/controller-runtime\"\n\"k8s.io/api/core/v1\"\n)\n\n"
	other             = "package other\n\nimport (\n\"context\"\nctrl \"sigs.k8s.io/controller-runtime\"\n)\n\ntype O struct{}\n\nfunc New() *O { return nil }\n\n" +
		"func (O) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }\n\n" +
		"func (o *O) SetupWithManager(mgr ctrl.Manager) error {\n\t_ = mgr.GetFieldIndexer().IndexField(nil, nil, \"\", nil)\n\treturn nil\n}\n"
)

// reconcilerOf returns the code of a type with a method Reconcile, and with the given set-up methods.
func reconcilerOf(name string, setups ...string) string {
	code := "type " + name + " struct{ Zone string }\n\nfunc (" + name + ") Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }\n\n"
	for _, setup := range setups {
		code += "func (r *" + name + ") " + setup + "(mgr ctrl.Manager) error { return ctrl.NewControllerManagedBy(mgr).For(&v1.Node{}).Complete(r) }\n\n"
	}
	return code
}

// TestStart compares the statements that start a process with the operator's main package.
func TestStart(t *testing.T) {
	two := reconcilerOf("R", "SetupForNodes", "SetupWithManager")
	tests := map[string]struct {
		reason      string
		controllers string
		main        string
		want        []string
	}{
		"Both":          {"main calls both set-ups", two, "r := &controllers.R{}\nr.SetupWithManager(mgr)\nr.SetupForNodes(mgr)", []string{"r := &controllers.R{}", "r.SetupWithManager(mgr)", "r.SetupForNodes(mgr)"}},
		"OneOfTwo":      {"main calls one of two", two, "(&controllers.R{}).SetupForNodes(mgr)", []string{"r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"None":          {"main calls none: SetupWithManager", two, "", []string{"r := &controllers.R{", "// FILL IN Zone: a string", "}", "r.SetupWithManager(mgr)"}},
		"NoneFirst":     {"main calls none: the first", reconcilerOf("R", "SetupA", "SetupB"), "", []string{"r := &controllers.R{", "// FILL IN Zone: a string", "}", "r.SetupA(mgr)"}},
		"TwoValues":     {"two literals", two, "(&controllers.R{Zone: \"a\"}).SetupForNodes(mgr)\nr := controllers.R{Zone: \"b\"}\nr.SetupWithManager(mgr)", []string{"r := &controllers.R{", "Zone: \"a\",", "}", "r2 := &controllers.R{", "Zone: \"b\",", "}", "r.SetupForNodes(mgr)", "r2.SetupWithManager(mgr)"}},
		"Else":          {"only one branch runs", two, "if os.Args[1] == \"\" {\n(&controllers.R{}).SetupForNodes(mgr)\n} else {\n(&controllers.R{}).SetupWithManager(mgr)\n}", []string{"r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"Return":        {"a branch that ends the function", two, "if os.Args[1] == \"\" {\n(&controllers.R{}).SetupForNodes(mgr)\nreturn\n}\n(&controllers.R{}).SetupWithManager(mgr)", []string{"r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"Switch":        {"one case of a switch on one value", two, "r := &controllers.R{}\nswitch os.Args[1] {\ncase \"\":\nr.SetupForNodes(mgr)\ndefault:\nr.SetupWithManager(mgr)\n}", []string{"r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"OtherType":     {"a method of another type", two, "(&controllers.R{}).SetupForNodes(mgr)\no := other.New()\no.SetupWithManager(mgr)", []string{"r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"Loop":          {"a copy of a loop variable does not show its value", two, "for _, r := range []controllers.R{} {\nr := r\nr.SetupForNodes(mgr)\n}", []string{"r := &controllers.R{", "// FILL IN Zone: a string", "}", "r.SetupForNodes(mgr)"}},
		"ValueOnly":     {"a function with a value of main", two + "func Setup(mgr ctrl.Manager, r *R) error { return r.SetupWithManager(mgr) }\n", "controllers.Setup(mgr, &controllers.R{Zone: \"a\"})", []string{"controllers.Setup(mgr, &controllers.R{", "Zone: \"a\",", "})"}},
		"Results":       {"a set-up with two results", reconcilerOf("R") + "func Setup(mgr ctrl.Manager) (*R, error) { return nil, ctrl.NewControllerManagedBy(mgr).For(&v1.Node{}).Complete(&R{}) }\n", "controllers.Setup(mgr)", []string{"_, err := controllers.Setup(mgr)"}},
		"Once":          {"a function in place of the set-ups that main calls too", reconcilerOf("A", "SetupWithManager") + reconcilerOf("B", "SetupWithManager") + "func AddAll(mgr ctrl.Manager) error { _ = (&A{}).SetupWithManager(mgr); return (&B{}).SetupWithManager(mgr) }\n", "controllers.AddAll(mgr)\n(&controllers.A{}).SetupWithManager(mgr)", []string{"controllers.AddAll(mgr)"}},
		"Needed":        {"a function without which nothing is set up", reconcilerOf("a", "setup") + reconcilerOf("b", "setup") + "func AddAll(mgr ctrl.Manager) error { _ = (&a{}).setup(mgr); return (&b{}).setup(mgr) }\n", "", []string{"controllers.AddAll(mgr)"}},
		"ByAnother":     {"a set-up that adds another reconciler", reconcilerOf("Child", "SetupWithManager") + "type Parent struct{}\n\nfunc (Parent) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }\n\nfunc (p *Parent) SetupWithManager(mgr ctrl.Manager) error { return (&Child{}).SetupWithManager(mgr) }\n", "(&controllers.Parent{}).SetupWithManager(mgr)", []string{"parent := &controllers.Parent{}", "parent.SetupWithManager(mgr)"}},
		"WithoutMethod": {"a type that builds a controller of a function", "type Operator struct{ Zone string }\n\nfunc (o *Operator) SetupWithManager(mgr ctrl.Manager) error { return ctrl.NewControllerManagedBy(mgr).For(&v1.Node{}).Complete(nil) }\n", "(&controllers.Operator{Zone: \"a\"}).SetupWithManager(mgr)", []string{"operator := &controllers.Operator{", "Zone: \"a\",", "}", "operator.SetupWithManager(mgr)"}},
		"IndexMethod":   {"nobody knows who calls a method", two + "type index struct{}\n\nfunc (index) add(mgr ctrl.Manager) { mgr.GetFieldIndexer().IndexField(nil, nil, \"\", nil) }\n", "(&controllers.R{}).SetupForNodes(mgr)", []string{"// FILL IN set up the field index of controllers/c.go:19", "r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"IndexChannel":  {"an argument that only main has", two + "func Index(mgr ctrl.Manager, c chan int) { mgr.GetFieldIndexer().IndexField(nil, nil, \"\", nil) }\n", "controllers.Index(mgr, make(chan int))\n(&controllers.R{}).SetupForNodes(mgr)", []string{"// FILL IN set up the field index of controllers/c.go:17", "r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"IndexPrivate":  {"the exported function that calls it", two + "func Index(mgr ctrl.Manager) { index(mgr) }\nfunc index(mgr ctrl.Manager) { mgr.GetFieldIndexer().IndexField(nil, nil, \"\", nil) }\n", "controllers.Index(mgr)\n(&controllers.R{}).SetupForNodes(mgr)", []string{"controllers.Index(mgr)", "r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"IndexUnused":   {"what nobody calls", two + "func Index(mgr ctrl.Manager) { mgr.GetFieldIndexer().IndexField(nil, nil, \"\", nil) }\n", "(&controllers.R{}).SetupForNodes(mgr)", []string{"r := &controllers.R{}", "r.SetupForNodes(mgr)"}},
		"OnlyComments":  {"a manager that nothing needs is not declared", reconcilerOf("r", "setup"), "", []string{"// FILL IN set up r of controllers/c.go:11: no exported function was found that makes it"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/x\n")
			write(t, filepath.Join(dir, "controllers/c.go"), controllersHeader+test.controllers)
			write(t, filepath.Join(dir, "other/o.go"), other)
			write(t, filepath.Join(dir, "main.go"), mainHeader+test.main+"\n}\n")
			stdout, stderr, code := command("-o", "-", filepath.Join(dir, "controllers"))
			require.Zero(t, code, stderr)
			assert.Equal(t, test.want, statements(stdout), test.reason)
		})
	}
}

// statements returns the lines of exploreStart that set up something. It leaves out the lines that handle errors.
func statements(file string) (lines []string) {
	_, body, _ := strings.Cut(file, "func exploreStart(p *reconciletest.Process) error {\n")
	body, _, _ = strings.Cut(body, "\treturn nil\n}\n")
	body = strings.ReplaceAll(body, "; err != nil {\n\t\treturn err\n\t}", "")
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "if "), "err := ")
		isTitle := strings.HasPrefix(line, "// ") && !strings.HasPrefix(line, fillIn(""))
		if line != "" && line != "mgr := p.Manager()" && !isTitle {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestNamesOfMains checks that the suffix of each main package comes from its folder, and that no name of the test occurs twice.
func TestNamesOfMains(t *testing.T) {
	var names []string
	for _, folder := range []string{"cmd/shop-manager", "cmd/agent", "other/agent", "cmd/agent2", "cmd/start-agent", "cmd/object", "cmd/_"} {
		names = append(names, suffixOf(&pkg{path: "example.com/x/" + folder}, names))
	}
	assert.Equal(t, []string{"ShopManager", "Agent", "Agent2", "Agent22", "MainStartAgent", "MainObject", "Main"}, names)
}
