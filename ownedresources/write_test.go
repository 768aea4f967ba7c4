package ownedresources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Without controllers a namespace stays Terminating.
func TestPostInANamespaceThatIsDeleted(t *testing.T) {
	w := newTestEnv(t)
	require.NoError(t, w.other.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	_, err := w.apply(t, w.service())
	var wait *WaitingError
	require.ErrorAs(t, err, &wait, "nothing is wrong with the object")
	require.ErrorContains(t, err, "its namespace is being deleted")
}

func TestPostOfAnInvalidObject(t *testing.T) {
	w := newTestEnv(t)
	bad := w.deployment()
	bad.Spec.Template.Spec.Containers[0].Name = "Not A Name"
	_, err := w.apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "create Deployment "+w.namespace+"/web: "), err.Error())
}

func TestServerSideApplyLosesARace(t *testing.T) {
	w := newTestEnv(t)
	first := w.expect(t, w.deployment(), Created, "POST deployments")
	require.NoError(t, w.other.Delete(t.Context(), first.DeepCopyObject().(client.Object)))
	for name, replaced := range map[string]bool{"Deleted": false, "Replaced": true} {
		t.Run(name, func(t *testing.T) {
			if replaced {
				theirs := w.deployment()
				require.NoError(t, w.other.Create(t.Context(), theirs))
				t.Cleanup(func() { require.NoError(t, w.other.Delete(context.Background(), theirs)) })
			}
			o := ownerOf(t, w)
			k, err := w.applier.kinds.of(first, w.client.Scheme())
			require.NoError(t, err)
			_, err = w.applier.serverSideApply(t.Context(), &desired{kind: k, object: w.deployment(), owner: o, options: &childOptions{}}, first)
			require.True(t, apierrors.IsConflict(err), "an apply creates no object, and writes none that replaced ours: %v", err)
		})
	}
}

func TestWithoutValues(t *testing.T) {
	err := withoutValues(apierrors.NewBadRequest(`spec.template: Invalid value: {"env":[{"value":"canary"}]}: field is immutable`))
	require.Equal(t, "spec.template: Invalid value: {…}: field is immutable", err.Error())
	require.True(t, apierrors.IsBadRequest(err), "it still is the API server's error")
}

// An API server of an older version does not have the field.
func TestUnknownFieldAsInvalid(t *testing.T) {
	err := unknownFieldAsInvalid(apierrors.NewInternalError(errors.New(`failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.new: field not declared in schema`)))
	require.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, ".spec.new: field not declared in schema")
	other := apierrors.NewInternalError(errors.New("etcd is full"))
	require.Same(t, other, unknownFieldAsInvalid(other), "other errors of the server stay as they are")
}
