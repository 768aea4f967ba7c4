package fieldmanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames(t *testing.T) {
	app := schema.GroupVersionKind{Group: "apps.example.com", Version: "v1", Kind: "App"}
	require.EqualValues(t, "app.apps.example.com", For(app))
	require.Equal(t, "app.apps.example.com", Reporter(app))
	require.EqualValues(t, "pod", For(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))

	for n := range 200 { // some names are cut right after a dot
		long := schema.GroupVersionKind{Group: strings.Repeat("a", n+1) + ".example.com", Kind: "PostgresqlBackupSchedule"}
		require.LessOrEqual(t, len(Released(For(long))), longest, "the API server refuses longer ones, and with them every apply")
		require.Empty(t, validation.IsQualifiedName(Reporter(long)), "it drops events of others")
	}
}
