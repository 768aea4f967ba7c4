package readiness

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTypedEqualsKstatusInItsOwnCases compares this package with kstatus. It takes the manifests from the tests of kstatus, in the version
// that go.mod requires.
func TestTypedEqualsKstatusInItsOwnCases(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/fluxcd/cli-utils/pkg/kstatus/status").Output()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "status_compute_test.go"), nil, 0)
	require.NoError(t, err)
	cases, typed := 0, 0
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || !strings.HasPrefix(literal.Value, "`") {
			return true
		}
		manifest, err := strconv.Unquote(literal.Value)
		require.NoError(t, err)
		decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(manifest), nil, nil)
		if err != nil {
			return true // a custom resource
		}
		obj := decoded.(client.Object)
		cases++
		if _, ok := computeTyped(obj); ok {
			t.Run(strconv.Itoa(cases)+"/"+kind.Kind, func(t *testing.T) { requireEqualsKstatus(t, obj) })
			typed++
			return true
		}
		t.Run(strconv.Itoa(cases)+"/"+kind.Kind, func(t *testing.T) { requireReadsNoMore(t, obj) })
		return true
	})
	require.GreaterOrEqual(t, typed, 9, "kstatus has cases of Deployments and Services")
	require.GreaterOrEqual(t, cases-typed, 20, "and of other kinds")
}
