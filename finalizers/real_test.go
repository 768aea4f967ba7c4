package finalizers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
)

var controlPlane = controlplanetest.Shared()

// server is a client of a real API server, whose requests are counted, and a namespace there.
type server struct {
	client.Client
	count     requests.Count
	namespace string
}

func newServer(t *testing.T) *server {
	t.Helper()
	cp := controlPlane(t)
	s := &server{namespace: controlplanetest.Namespace(t, cp)}
	var err error
	s.Client, err = client.New(s.count.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	return s
}

func (s *server) create(t *testing.T, obj client.Object, names ...string) {
	t.Helper()
	obj.SetNamespace(s.namespace)
	obj.SetName("ann")
	obj.SetFinalizers(names)
	require.NoError(t, s.Create(t.Context(), obj))
	t.Cleanup(func() { // a finalizer that is left would keep the namespace
		_ = s.Patch(context.Background(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

func (s *server) read(t *testing.T, obj client.Object) []string {
	t.Helper()
	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj.GetFinalizers()
}

func TestRealLifeOfAnObject(t *testing.T) {
	require.NoError(t, controlPlane(t).InstallCRDs(t.Context(), "../internal/controlplane/testdata/widgets.yaml"))
	widget := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	}
	cases := map[string]struct {
		reason string
		obj    client.Object
		read   client.Object
		patch  string
	}{
		"BuiltIn": {"a typed object", &corev1.ConfigMap{}, &corev1.ConfigMap{}, "PATCH configmaps"},
		"Custom":  {"a custom resource", widget(), widget(), "PATCH widgets"},
		"Metadata": {
			"of which only the metadata is read", &corev1.ConfigMap{},
			&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}, "PATCH configmaps",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.create(t, tc.obj, theirs)
			obj := tc.read
			obj.SetNamespace(s.namespace)
			obj.SetName("ann")
			s.read(t, obj)
			s.count.Sent()

			for _, want := range []bool{true, false} {
				added, err := finalizers.Ensure(t.Context(), s, obj, account)
				require.NoError(t, err, tc.reason)
				require.Equal(t, want, added)
			}
			require.Equal(t, []string{tc.patch}, s.count.Sent(), "one request, and none when it is there")
			version := obj.GetResourceVersion()
			require.Equal(t, []string{theirs, account}, s.read(t, obj))
			require.Equal(t, version, obj.GetResourceVersion(), "in memory is what is stored")

			require.NoError(t, s.Delete(t.Context(), obj))
			s.read(t, obj)
			outcome, err := finalizers.Finalize(t.Context(), s, obj, account, succeed)
			require.NoError(t, err)
			require.Equal(t, finalizers.Finished, outcome)
			require.Equal(t, []string{theirs}, obj.GetFinalizers())
			version = obj.GetResourceVersion()
			require.Equal(t, []string{theirs}, s.read(t, obj))
			require.Equal(t, version, obj.GetResourceVersion())

			stale := obj.DeepCopyObject().(client.Object)
			for _, o := range []client.Object{obj, stale} {
				outcome, err = finalizers.Finalize(t.Context(), s, o, theirs, succeed)
				require.NoError(t, err, "also of a stale copy, when the object is gone")
				require.Equal(t, finalizers.Finished, outcome)
				require.Empty(t, o.GetFinalizers())
			}
			require.True(t, apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
		})
	}
}

// What the API server answers, on which Ensure and Remove rely.
func TestRealRefusals(t *testing.T) {
	t.Run("NewFinalizerDuringDeletion", func(t *testing.T) {
		s := newServer(t)
		obj := &corev1.ConfigMap{}
		s.create(t, obj, theirs)
		require.NoError(t, s.Delete(t.Context(), obj.DeepCopy()))
		_, err := finalizers.Ensure(t.Context(), s, obj, account)
		require.True(t, apierrors.IsConflict(err), "a copy from before the deletion: %v", err)

		s.read(t, obj)
		_, err = finalizers.Ensure(t.Context(), s, obj, account)
		require.ErrorIs(t, err, finalizers.ErrBeingDeleted)
		unlocked := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"finalizers":[%q,%q]}}`, theirs, account))
		err = s.Patch(t.Context(), obj.DeepCopy(), unlocked)
		require.True(t, apierrors.IsInvalid(err), "what the API server would have said: %v", err)
		require.ErrorContains(t, err, "no new finalizers can be added if the object is being deleted")
	})
	t.Run("Namesake", func(t *testing.T) {
		s := newServer(t)
		former := &corev1.ConfigMap{}
		s.create(t, former)
		require.NoError(t, s.Delete(t.Context(), former.DeepCopy()))
		latter := &corev1.ConfigMap{}
		s.create(t, latter, account)

		_, err := finalizers.Ensure(t.Context(), s, former, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		former.Finalizers = []string{account}
		_, err = finalizers.Remove(t.Context(), s, former, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, []string{account}, s.read(t, latter))
	})
	t.Run("ShorterList", func(t *testing.T) {
		s := newServer(t)
		obj := &corev1.ConfigMap{}
		s.create(t, obj, theirs, account)
		stale := obj.DeepCopy()
		_, err := finalizers.Remove(t.Context(), s, obj, theirs)
		require.NoError(t, err)
		entry := client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/metadata/finalizers/1"},`+
			`{"op":"replace","path":"/metadata/resourceVersion","value":"`+stale.ResourceVersion+`"}]`))
		err = s.Patch(t.Context(), stale.DeepCopy(), entry)
		require.True(t, apierrors.IsInvalid(err), "why it is no JSON patch: %v", err)
		_, err = finalizers.Remove(t.Context(), s, stale, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
	})
}

// Patch on the kind is all that is needed: no update, and nothing on its subresource finalizers.
func TestRealPermissions(t *testing.T) {
	s := newServer(t)
	obj := &corev1.ConfigMap{}
	s.create(t, obj)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}}},
	}
	require.NoError(t, s.Create(t.Context(), role))
	user := "system:serviceaccount:" + s.namespace + ":operator"
	require.NoError(t, s.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.namespace, Name: "operator"}},
	}))
	c, err := client.New(controlPlane(t).ConfigFor(user), client.Options{})
	require.NoError(t, err)

	require.Eventually(t, func() bool { // the authorizer learns of the role from its own cache
		_, err := finalizers.Ensure(t.Context(), c, obj, account)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	_, err = finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err)
}
