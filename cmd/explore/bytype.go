package main

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// byType has the code of values by their type. The test uses it for fields and parameters of these types. % stands for the package's name.
var byType = map[typeRef]struct{ imported, code string }{
	{"context", "Context"}:                                           {"", "p.Context()"},
	{"net/http", "Client"}:                                           {"", "mgr.GetHTTPClient()"},
	{controllerRuntime, "Manager"}:                                   {"", "mgr"},
	{controllerRuntime + "/pkg/manager", "Manager"}:                  {"", "mgr"},
	{controllerRuntime + "/pkg/client", "Client"}:                    {"", "mgr.GetClient()"},
	{controllerRuntime + "/pkg/client", "Reader"}:                    {"", "mgr.GetAPIReader()"},
	{controllerRuntime + "/pkg/client", "Writer"}:                    {"", "mgr.GetClient()"},
	{controllerRuntime + "/pkg/client", "FieldIndexer"}:              {"", "mgr.GetFieldIndexer()"},
	{controllerRuntime + "/pkg/cache", "Cache"}:                      {"", "mgr.GetCache()"},
	{"k8s.io/apimachinery/pkg/runtime", "Scheme"}:                    {"", "mgr.GetScheme()"},
	{"k8s.io/apimachinery/pkg/api/meta", "RESTMapper"}:               {"", "mgr.GetRESTMapper()"},
	{"k8s.io/client-go/rest", "Config"}:                              {"", "mgr.GetConfig()"},
	{"k8s.io/client-go/tools/record", "EventRecorder"}:               {"", `mgr.GetEventRecorderFor("operator")`},
	{"k8s.io/client-go/tools/events", "EventRecorder"}:               {"", `mgr.GetEventRecorder("operator")`},
	{"github.com/go-logr/logr", "Logger"}:                            {"", "mgr.GetLogger()"},
	{"k8s.io/client-go/kubernetes", "Interface"}:                     {"k8s.io/client-go/kubernetes", "%.NewForConfigOrDie(mgr.GetConfig())"},
	{"k8s.io/client-go/kubernetes", "Clientset"}:                     {"k8s.io/client-go/kubernetes", "%.NewForConfigOrDie(mgr.GetConfig())"},
	{"k8s.io/client-go/dynamic", "Interface"}:                        {"k8s.io/client-go/dynamic", "%.NewForConfigOrDie(mgr.GetConfig())"},
	{"k8s.io/client-go/discovery", "DiscoveryInterface"}:             {"k8s.io/client-go/discovery", "%.NewDiscoveryClientForConfigOrDie(mgr.GetConfig())"},
	{"k8s.io/utils/clock", "Clock"}:                                  {"k8s.io/utils/clock", "%.RealClock{}"},
	{"k8s.io/utils/clock", "PassiveClock"}:                           {"k8s.io/utils/clock", "%.RealClock{}"},
	{"k8s.io/utils/clock", "WithTicker"}:                             {"k8s.io/utils/clock", "%.RealClock{}"},
	{"github.com/prometheus/client_golang/prometheus", "Registerer"}: {"github.com/prometheus/client_golang/prometheus", "%.NewRegistry()"},
}

// pointers are types in byType for which the code is only used if the field or parameter is a pointer.
var pointers = []string{"Scheme", "Config", "Clientset"}

// filled returns the code of a value for a field or a parameter of type t, if the type is in byType. For any other type it returns "".
func (g *generator) filled(t ast.Expr, s *source) string {
	ref := s.typeOf(t)
	rule, ok := byType[ref]
	_, isPointer := t.(*ast.StarExpr)
	if !ok || isPointer != (slices.Contains(pointers, ref.name) || ref.path == "net/http") {
		return ""
	}
	if rule.imported == "" {
		return rule.code
	}
	return strings.Replace(rule.code, "%", g.names.use(rule.imported, path.Base(rule.imported)), 1)
}

// typeCode returns the code of a type in the test. It returns false if the test cannot name the type.
func (g *generator) typeCode(t ast.Expr, s *source) (string, bool) {
	switch t := t.(type) {
	case *ast.Ident:
		switch {
		case types.Universe.Lookup(t.Name) != nil:
			return t.Name, true
		case !ast.IsExported(t.Name) || !g.m.mayImport(g.p, s.pkg.path):
			return "", false
		}
		return g.names.use(s.pkg.path, s.pkg.name) + "." + t.Name, true
	case *ast.SelectorExpr:
		x, ok := t.X.(*ast.Ident)
		if !ok || s.imported(x.Name) == "" || !g.m.mayImport(g.p, s.imported(x.Name)) {
			return "", false
		}
		return g.names.use(s.imported(x.Name), x.Name) + "." + t.Sel.Name, true
	case *ast.StarExpr:
		code, ok := g.typeCode(t.X, s)
		return "*" + code, ok
	case *ast.ArrayType:
		code, ok := g.typeCode(t.Elt, s)
		return "[]" + code, ok && t.Len == nil
	case *ast.MapType:
		key, ok := g.typeCode(t.Key, s)
		value, valueOK := g.typeCode(t.Value, s)
		return "map[" + key + "]" + value, ok && valueOK
	}
	return "", false
}
