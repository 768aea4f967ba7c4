package argocd

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	page = "../../docs/guides/other-tools.md"
	key  = "resource.customizations.health.shop.example.com_Shop"
)

// script returns the health check of the page.
func script(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for block := range strings.SplitSeq(string(text), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		settings := &corev1.ConfigMap{}
		if strings.Contains(block, key) {
			require.NoError(t, yaml.UnmarshalStrict([]byte(block), settings))
			require.Equal(t, "argocd-cm", settings.Name)
			return settings.Data[key]
		}
	}
	t.Fatalf("%s has no YAML with the key %s", page, key)
	return ""
}

// health returns the status and the message that Argo CD shows for an object. An object that is being deleted is Progressing, and the
// script is not called, as in Argo CD's package gitops-engine/pkg/health. The script has the libraries that Argo CD's package util/lua
// opens by default, except for a few functions of os.
func health(t *testing.T, script string, obj *unstructured.Unstructured) (status, message string) {
	t.Helper()
	if obj.GetDeletionTimestamp() != nil {
		return "Progressing", "Pending deletion"
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		require.NoError(t, l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	l.SetGlobal("obj", value(t, l, obj.Object))
	require.NoError(t, l.DoString(script))
	answer, is := l.Get(-1).(*lua.LTable)
	require.True(t, is, "the script returns %s", l.Get(-1).Type())
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

// value converts a JSON value to Lua.
func value(t *testing.T, l *lua.LState, from any) lua.LValue {
	t.Helper()
	switch from := from.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(from)
	case string:
		return lua.LString(from)
	case int64:
		return lua.LNumber(from)
	case []any:
		table := l.NewTable()
		for _, item := range from {
			table.Append(value(t, l, item))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for name, item := range from {
			table.RawSetString(name, value(t, l, item))
		}
		return table
	}
	t.Fatalf("a %T is not in this object", from)
	return nil
}
