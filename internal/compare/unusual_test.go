package compare

import (
	"encoding/json"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What encoding/json reads by rules of its own is encoded by it.
func TestUnusualStructs(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	tests := map[string]any{
		"number as a string": struct {
			N int `json:"n,string"`
		}{5},
		"embedded pointer":     struct{ *inner }{&inner{"x"}},
		"nil embedded pointer": struct{ *inner }{},
	}
	for name, v := range tests {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(v)
			require.NoError(t, err)
			got, err := AppendValue(nil, v)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got))
		})
	}
}

type unusualObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Count             int `json:"count,string"`
}

func (o *unusualObject) DeepCopyObject() runtime.Object { c := *o; return &c }

func TestUnusualObjectIsRefused(t *testing.T) {
	_, err := Compile(&unusualObject{}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}, BuiltIn)
	require.EqualError(t, err, "compare.unusualObject cannot be compared: its field Count has the option string: give the type plain fields")
}

// What is compared may be in an informer's cache, which others read at the same time.
func TestComparingChangesNothing(t *testing.T) {
	value := CompileValue(reflect.TypeFor[resource.Quantity]())
	huge := resource.MustParse("100000000000000000000000000000000")
	one := resource.MustParse("1")
	before := one.DeepCopy()
	require.False(t, value.Equal(unsafe.Pointer(&one), unsafe.Pointer(&huge)))
	require.Equal(t, before, one, "also where the number does not fit and is converted")
}
