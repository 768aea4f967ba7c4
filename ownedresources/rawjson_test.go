package ownedresources

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

func TestWithSortedJSON(t *testing.T) {
	raw := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	got := &testkinds.Widget{Spec: testkinds.WidgetSpec{Template: &runtime.RawExtension{Raw: []byte(`{"b": 1, "a": 9007199254740993}`)}}}
	owned.WithSortedJSON(got)
	want := &testkinds.Widget{Spec: testkinds.WidgetSpec{Template: &runtime.RawExtension{Raw: []byte(`{"a":9007199254740993,"b":1}`)}}}
	if d := cmp.Diff(want.Spec.Template, got.Spec.Template); d != "" {
		t.Errorf("behind a pointer (-want, +got)\n%s", d)
	}
	gotMap := &struct {
		Many map[string][]runtime.RawExtension
		None *runtime.RawExtension
	}{Many: map[string][]runtime.RawExtension{"x": {raw(`{"b":1, "a":2}`), raw(`{`), raw(``)}}}
	wantMap := map[string][]runtime.RawExtension{"x": {raw(`{"a":2,"b":1}`), raw(`{`), raw(``)}}
	owned.SortJSON(reflect.ValueOf(gotMap).Elem())
	if d := cmp.Diff(wantMap, gotMap.Many); d != "" {
		t.Errorf("in a map; what is no JSON stays (-want, +got)\n%s", d)
	}
}
