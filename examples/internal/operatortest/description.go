package operatortest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Describe tells what there is: of each object its owner, its labels, and what the test takes from it as JSON.
func (h *History) Describe(t testing.TB, what func(client.Object) any) string {
	t.Helper()
	var all strings.Builder
	for _, obj := range h.Now() {
		owned := ""
		if ref := metav1.GetControllerOf(obj); ref != nil {
			owned = ref.Kind + " " + ref.Name
		}
		encoded, err := json.Marshal(what(obj))
		require.NoError(t, err)
		fmt.Fprintf(&all, "%T %s of %q, labels %v\n\t%s\n", obj, obj.GetName(), owned, obj.GetLabels(), encoded)
	}
	return all.String()
}
