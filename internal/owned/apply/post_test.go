package apply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/write"
)

// The control plane runs no controllers, so a deleted namespace stays Terminating.
func TestPostInANamespaceThatIsDeleted(t *testing.T) {
	w := newServer(t)
	require.NoError(t, w.Other.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	_, err := w.Apply(t, w.Service())
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait, "nothing is wrong with the object")
	require.ErrorContains(t, err, "its namespace is being deleted")
}

func TestPostOfAnInvalidObject(t *testing.T) {
	w := newServer(t)
	bad := w.Deployment()
	bad.Spec.Template.Spec.Containers[0].Name = "Not A Name"
	_, err := w.Apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "create Deployment "+w.Namespace+"/web: "), err.Error())
}

// A builder may return a copy of a live object.
func TestPostOfACopiedObject(t *testing.T) {
	env := newServer(t)
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "source"}, Data: map[string][]byte{"a": []byte("b")}}
	require.NoError(t, env.Other.Create(t.Context(), source, client.FieldOwner("somebody")))
	untyped, err := runtime.DefaultUnstructuredConverter.ToUnstructured(source)
	require.NoError(t, err)
	for name, copied := range map[string]client.Object{"typed": source.DeepCopy(), "untyped": &unstructured.Unstructured{Object: untyped}} {
		t.Run(name, func(t *testing.T) {
			copied.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			copied.SetName(name)
			copied.SetGeneration(7)
			copied.SetSelfLink("/x")
			copied.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			copied.SetDeletionGracePeriodSeconds(new(int64(3)))
			want := copied.DeepCopyObject()
			live := env.Expect(t, copied, apply.Created, "POST secrets")
			require.Equal(t, want, copied.(runtime.Object), "the caller's object is not changed")
			require.NotEqual(t, source.UID, live.GetUID())
			require.Zero(t, live.GetGeneration())
			require.Nil(t, live.GetDeletionTimestamp())
			for _, entry := range live.GetManagedFields() {
				require.NotEqual(t, "somebody", entry.Manager)
			}
			env.Settled(t, copied)
		})
	}
}

func TestServerSideApplyLosesARace(t *testing.T) {
	w := newServer(t)
	first := w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
	require.NoError(t, w.Other.Delete(t.Context(), first.DeepCopyObject().(client.Object)))
	for name, replaced := range map[string]bool{"Deleted": false, "Replaced": true} {
		t.Run(name, func(t *testing.T) {
			if replaced {
				theirs := w.Deployment()
				require.NoError(t, w.Other.Create(t.Context(), theirs))
				t.Cleanup(func() { require.NoError(t, w.Other.Delete(context.Background(), theirs)) })
			}
			o := w.OwnerOf(t)
			k, err := w.Applier.Kinds.Of(first, w.Client.Scheme())
			require.NoError(t, err)
			_, err = write.ServerSideApply(t.Context(), &owned.Desired{Kind: k, Object: w.Deployment(), Owner: o, Options: &owned.Options{}}, first)
			require.True(t, apierrors.IsConflict(err), "an apply creates no object, and writes none that replaced ours: %v", err)
		})
	}
}

// The API server may be older than the Kubernetes libraries, and lack some of their fields. It refuses an object with such a field, and its
// error names the field. This is so whether the child exists or not, and a live child stays as it is.
func TestFieldOfALaterVersion(t *testing.T) {
	w := newServer(t)
	later := func() *unstructured.Unstructured {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.Deployment())
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion("apps/v1")
		u.SetKind("Deployment")
		require.NoError(t, unstructured.SetNestedField(u.Object, "x", "spec", "template", "spec", "fieldOfTomorrow"))
		return u
	}
	_, err := w.Apply(t, later())
	require.ErrorContains(t, err, `unknown field "spec.template.spec.fieldOfTomorrow"`)
	w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
	_, err = w.Apply(t, later())
	require.ErrorContains(t, err, "spec.template.spec.fieldOfTomorrow")
	w.Settled(t, w.Deployment())
}
