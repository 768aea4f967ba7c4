package compare

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/applyschema"
)

type stringOptionObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Count             int `json:"count,string"`
}

func (o *stringOptionObject) DeepCopyObject() runtime.Object { c := *o; return &c }

func TestCompileRefusesAnUnsupportedField(t *testing.T) {
	_, err := Compile(&stringOptionObject{}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}, applyschema.BuiltIn)
	require.EqualError(t, err, "compare.stringOptionObject cannot be compared: its field Count has the option string: use a plain field instead")
}

// Programs add their own types to client-go's global scheme. client-go has no schemas for these types.
func TestCompileWithAKindInTheGlobalScheme(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "global.example.com", Version: "v1", Kind: "Gadget"}
	scheme.Scheme.AddKnownTypeWithName(kind, &gadget{})
	_, err := Compile(&gadget{}, kind, applyschema.BuiltIn)
	require.NoError(t, err)
}
