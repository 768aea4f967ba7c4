package forecast

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/preview"
)

// TestReportKeepsNamesOnly adds 10,000 objects whose values are large and all different. The report must keep only the first values of each
// group, and the names.
func TestReportKeepsNamesOnly(t *testing.T) {
	const objects, valueSize, most = 10_000, 10_000, 100 // bytes an object
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	r := &Report{}
	before := heap()
	for i := range objects {
		name := types.NamespacedName{Namespace: "shops", Name: fmt.Sprintf("shop-%05d", i)}
		value := strings.Repeat("x", valueSize) + name.Name
		r.Add(Object{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}, Name: name, Changes: []preview.Change{
			{Kind: schema.GroupKind{Kind: "ConfigMap"}, Name: name, Action: Apply, Differences: []preview.Difference{{Path: "data.text", Have: value, Want: value + "y"}}},
			{Kind: service, Name: name, Err: fmt.Errorf("apply Service %s: %s is refused", name, name.Name)},
		}})
	}
	each := (int64(heap()) - int64(before)) / objects
	t.Logf("%d bytes an object", each)
	if each > most {
		t.Errorf("%d bytes an object, which is more than %d", each, most)
	}
	if len(r.order) != 2 {
		t.Errorf("%d groups", len(r.order))
	}
	runtime.KeepAlive(r)
}
