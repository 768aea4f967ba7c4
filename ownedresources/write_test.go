package ownedresources

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// Without controllers a namespace stays Terminating.
func TestPostInANamespaceThatIsDeleted(t *testing.T) {
	w := newServerEnv(t)
	require.NoError(t, w.other.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	_, err := w.apply(t, w.service())
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait, "nothing is wrong with the object")
	require.ErrorContains(t, err, "its namespace is being deleted")
}

func TestPostOfAnInvalidObject(t *testing.T) {
	w := newServerEnv(t)
	bad := w.deployment()
	bad.Spec.Template.Spec.Containers[0].Name = "Not A Name"
	_, err := w.apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "create Deployment "+w.namespace+"/web: "), err.Error())
}

// A desired object may be a copy of a live one.
func TestPostOfACopiedObject(t *testing.T) {
	env := newServerEnv(t)
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "source"}, Data: map[string][]byte{"a": []byte("b")}}
	require.NoError(t, env.other.Create(t.Context(), source, client.FieldOwner("somebody")))
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
			live := env.expect(t, copied, apply.Created, "POST secrets")
			require.Equal(t, want, copied.(runtime.Object), "the caller's object is not changed")
			require.NotEqual(t, source.UID, live.GetUID())
			require.Zero(t, live.GetGeneration())
			require.Nil(t, live.GetDeletionTimestamp())
			for _, entry := range live.GetManagedFields() {
				require.NotEqual(t, "somebody", entry.Manager)
			}
			env.expect(t, copied, apply.Unchanged, none...)
		})
	}
}

func TestNulls(t *testing.T) {
	const nulls = `priority: null, spec: {size: null, subject: null, parts: null, config: {grpc: null, http: {endpoint: a}},
		plain: null, teeth: null, defaulted: null, labels: {a: null}, note: `
	stored := map[string]any{
		"size": nil, "subject": nil, "parts": nil, "config": map[string]any{"grpc": nil, "http": map[string]any{"endpoint": "a"}},
		"defaulted": int64(3), "labels": map[string]any{}, // the others are not nullable
	}
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint("KnownSchema=", known), func(t *testing.T) {
			env := newSprocketEnv(t, known)
			want := func(note string) client.Object { return env.sprocket(t, "{"+nulls+note+"}}") }
			refused := []string{"PATCH sprockets"}
			if known {
				refused = nil
			}
			requireStored := func(note string) {
				t.Helper()
				live := env.sprocket(t, "{}")
				env.live(t, live)
				require.Contains(t, live.Object, "priority")
				require.Nil(t, live.Object["priority"])
				stored["note"] = note
				require.Empty(t, cmp.Diff(stored, live.Object["spec"]))
			}
			env.expect(t, want("first"), apply.Created, "POST sprockets")
			env.expect(t, want("first"), apply.Unchanged, none...)
			requireStored("first")
			env.expect(t, want("second"), apply.Applied, slices.Concat([]string{"GET sprockets", "PATCH sprockets", "PATCH sprockets"}, refused)...)
			requireStored("second")
			env.expect(t, want("second"), apply.Unchanged, none...)

			values := env.sprocket(t, "{priority: 1, spec: {size: 1, subject: {name: a}, parts: [a], config: {grpc: {a: b}, http: {endpoint: a}}, labels: {}, note: second}}")
			env.expect(t, values, apply.Applied, "PATCH sprockets")
			env.expect(t, want("second"), apply.Applied, slices.Concat(refused, []string{"PATCH sprockets"})...)
			requireStored("second")

			if !known { // nobody knows which nulls the API server stores
				return
			}
			byHand(t, env, env.sprocket(t, "{}"), func(u *unstructured.Unstructured) {
				u.Object["priority"] = int64(5)
				unstructured.RemoveNestedField(u.Object, "spec", "config", "grpc")
				require.NoError(t, unstructured.SetNestedStringSlice(u.Object, []string{"theirs"}, "spec", "parts"))
			})
			env.expect(t, want("second"), apply.Applied, "PATCH sprockets")
			requireStored("second")

			byHand(t, env, env.sprocket(t, "{}"), func(u *unstructured.Unstructured) {
				require.NoError(t, unstructured.SetNestedStringMap(u.Object, map[string]string{"name": "theirs"}, "spec", "subject"))
			})
			env.expect(t, want("second"), apply.Unchanged, none...) // server-side apply would not repair it
		})
	}
}

func TestServerSideApplyLosesARace(t *testing.T) {
	w := newServerEnv(t)
	first := w.expect(t, w.deployment(), apply.Created, "POST deployments")
	require.NoError(t, w.other.Delete(t.Context(), first.DeepCopyObject().(client.Object)))
	for name, replaced := range map[string]bool{"Deleted": false, "Replaced": true} {
		t.Run(name, func(t *testing.T) {
			if replaced {
				theirs := w.deployment()
				require.NoError(t, w.other.Create(t.Context(), theirs))
				t.Cleanup(func() { require.NoError(t, w.other.Delete(context.Background(), theirs)) })
			}
			o := ownerOf(t, w)
			k, err := w.applier.Kinds.Of(first, w.client.Scheme())
			require.NoError(t, err)
			_, err = write.ServerSideApply(t.Context(), &owned.Desired{Kind: k, Object: w.deployment(), Owner: o, Options: &owned.Options{}}, first)
			require.True(t, apierrors.IsConflict(err), "an apply creates no object, and writes none that replaced ours: %v", err)
		})
	}
}
