package operatortest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AssertAdmission asserts that the API server refuses to create an object of a kind with a spec, and why; or that it
// accepts it, if refused is empty. Without a spec the object has none.
func (u *User) AssertAdmission(t *testing.T, kind schema.GroupVersionKind, spec any, refused, reason string) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(u.Namespace)
	obj.SetGenerateName("test-")
	if spec != nil {
		obj.Object["spec"] = spec
	}
	err := u.Create(t.Context(), obj)
	if refused == "" {
		assert.NoError(t, err, reason)
	} else {
		assert.ErrorContains(t, err, refused, reason)
	}
}
