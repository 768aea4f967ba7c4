package operatortest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Untyped is an object in the namespace, whose name the API server gives, with a spec that no type holds back. Without
// a spec it has none.
func (u *User) Untyped(kind schema.GroupVersionKind, spec any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(u.Namespace)
	obj.SetGenerateName("test-")
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

// AssertAdmission asserts that the API server finds a spec invalid, and why; or that it accepts it, if refused is empty.
func (u *User) AssertAdmission(t *testing.T, kind schema.GroupVersionKind, spec any, refused, reason string) {
	t.Helper()
	err := u.Create(t.Context(), u.Untyped(kind, spec))
	if refused == "" {
		assert.NoError(t, err, reason)
	} else if assert.True(t, apierrors.IsInvalid(err), "%s: %v", reason, err) {
		assert.ErrorContains(t, err, refused, reason)
	}
}
