package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// An API server that is older than the Kubernetes libraries does not know all of their fields. It refuses such a field by its name, whether the
// child exists or not, and the child stays as it is.
func TestFieldOfALaterVersion(t *testing.T) {
	w := newServerEnv(t)
	later := func() *unstructured.Unstructured {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.deployment())
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion("apps/v1")
		u.SetKind("Deployment")
		require.NoError(t, unstructured.SetNestedField(u.Object, "x", "spec", "template", "spec", "fieldOfTomorrow"))
		return u
	}
	_, err := w.apply(t, later())
	require.ErrorContains(t, err, `unknown field "spec.template.spec.fieldOfTomorrow"`)
	w.expect(t, w.deployment(), apply.Created, "POST deployments")
	_, err = w.apply(t, later())
	require.ErrorContains(t, err, "spec.template.spec.fieldOfTomorrow")
	w.expect(t, w.deployment(), apply.Unchanged, none...)
}
