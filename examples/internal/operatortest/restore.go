package operatortest

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// Restored is what [Restore] made of a dump.
type Restored struct {
	*User
	objects []*unstructured.Unstructured
}

// Restore creates the objects of a dump, a list as kubectl prints it with --show-managed-fields, in the namespace that
// they were dumped from: a hash in an annotation covers its name. Spec, status, generation and managedFields are as in the
// dump. UIDs, times and a Service's address are new; where an object refers to the UID of another one, it refers to the new one.
//
// The API server counts generations itself. An object of generation 2 is therefore created with other, a spec that
// differs, by kind, and then changed to the spec in the dump. The objects are deleted when the test ends.
func Restore(t *testing.T, cp *controlplane.ControlPlane, scheme *runtime.Scheme, file string, other map[string]map[string]any) *Restored {
	t.Helper()
	left := readDump(t, file)
	c := administrator(t, cp, scheme)
	r := &Restored{User: &User{WithWatch: c, ControlPlane: cp, Namespace: left[0].GetNamespace()}}
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}})))

	for len(left) > 0 {
		i := slices.IndexFunc(left, func(obj unstructured.Unstructured) bool { return !ownedByAny(&obj, left) })
		require.GreaterOrEqual(t, i, 0, "each object is owned by another one")
		dumped := left[i]
		restored := r.restore(t, &dumped, other[dumped.GetKind()])
		r.objects = append(r.objects, restored)
		left = replaceUID(t, slices.Delete(left, i, i+1), string(dumped.GetUID()), string(restored.GetUID()))
	}
	return r
}

func readDump(t *testing.T, file string) []unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var list unstructured.UnstructuredList
	require.NoError(t, yaml.Unmarshal(text, &list))
	require.NotEmpty(t, list.Items)
	return list.Items
}

// TypedDump returns the objects of a dump as they are, in the types of a scheme, for a fake client.
func TypedDump(t *testing.T, file string, scheme *runtime.Scheme) (objects []client.Object) {
	t.Helper()
	for _, obj := range readDump(t, file) {
		typed, err := scheme.New(obj.GroupVersionKind())
		require.NoError(t, err)
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed))
		objects = append(objects, typed.(client.Object))
	}
	return objects
}

// ownedByAny reports whether the owner of an object is one of others.
func ownedByAny(obj *unstructured.Unstructured, others []unstructured.Unstructured) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return slices.ContainsFunc(others, func(other unstructured.Unstructured) bool { return other.GetUID() == owner.UID })
	})
}

// replaceUID replaces a UID wherever it is: managedFields name the UIDs of owners, too.
func replaceUID(t *testing.T, objects []unstructured.Unstructured, old, uid string) []unstructured.Unstructured {
	t.Helper()
	for i := range objects {
		encoded, err := json.Marshal(&objects[i])
		require.NoError(t, err)
		objects[i] = unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(encoded), old, uid)), &objects[i]))
	}
	return objects
}

// restore creates one object. The managedFields come last: a write of them alone is not itself recorded in them.
func (r *Restored) restore(t *testing.T, dumped *unstructured.Unstructured, other map[string]any) *unstructured.Unstructured {
	t.Helper()
	live := withoutServerFields(dumped)
	spec := live.Object["spec"]
	unstructured.RemoveNestedField(live.Object, "status")
	if dumped.GetGeneration() > 1 {
		require.EqualValues(t, 2, dumped.GetGeneration())
		require.NotEmpty(t, other, "Restore needs another spec for kind %s", dumped.GetKind())
		edited := runtime.DeepCopyJSON(spec.(map[string]any))
		maps.Copy(edited, other)
		live.Object["spec"] = edited
	}
	live.SetManagedFields(nil)
	require.NoError(t, r.Create(t.Context(), live))
	t.Cleanup(func() { _ = r.Delete(context.Background(), live, client.GracePeriodSeconds(0)) })
	if dumped.GetGeneration() > 1 {
		live.Object["spec"] = spec
		require.NoError(t, r.Update(t.Context(), live))
	}
	if status, ok := dumped.Object["status"]; ok {
		live.Object["status"] = status
		require.NoError(t, r.Status().Update(t.Context(), live))
	}
	live.SetManagedFields(dumped.GetManagedFields())
	if len(dumped.GetManagedFields()) == 0 {
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{}}) // an empty entry clears them, an empty list leaves them
	}
	require.NoError(t, r.Update(t.Context(), live))
	require.Equal(t, dumped.GetGeneration(), live.GetGeneration(), "%s %s", dumped.GetKind(), dumped.GetName())
	require.Empty(t, cmp.Diff(withoutServerFields(dumped).Object, withoutServerFields(live).Object), "%s %s is not as dumped", dumped.GetKind(), dumped.GetName())
	return live
}

// withoutServerFields returns a copy without what the API server sets anew at every creation.
func withoutServerFields(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	if ip, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP"); obj.GetKind() == "Service" && ip != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(obj.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(obj.Object, "spec", "clusterIPs")
	}
	return obj
}

// AssertUnchanged triggers passes over the primary objects, which are of one kind, and asserts that the operator sends no
// request and that no other object of the dump changes: its resourceVersion stays, and with it generation and pod template.
func (r *Restored) AssertUnchanged(t *testing.T, o *Operator, kind string) {
	t.Helper()
	o.Pass(t, r, r.primary(t, kind)...)
	assert.Empty(t, o.Requests.Take(), "an upgrade writes nothing")
	for _, obj := range r.objects {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(obj.GroupVersionKind())
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(obj), now))
		assert.Equal(t, obj.GetGeneration(), now.GetGeneration(), "%s %s", obj.GetKind(), obj.GetName())
		if obj.GetKind() != kind {
			assert.Equal(t, obj.GetResourceVersion(), now.GetResourceVersion(), "%s %s was written to", obj.GetKind(), obj.GetName())
		}
	}
}

// AssertOwnersMoved is AssertUnchanged for an operator that uses another version of its API than the one that left the objects: it writes
// the version into the owner references of the children, and besides that only what the library records in its own annotations. It returns the
// requests that this took.
func (r *Restored) AssertOwnersMoved(t *testing.T, o *Operator, to schema.GroupVersionKind) map[string]int {
	t.Helper()
	primary := r.primary(t, to.Kind)
	o.Pass(t, r, primary...)
	requests := o.Requests.Take()
	for _, obj := range r.objects {
		if obj.GetKind() == to.Kind {
			continue
		}
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(obj.GroupVersionKind())
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(obj), now))
		want := withoutServerFields(obj)
		owners := want.GetOwnerReferences()
		for i := range owners {
			if owners[i].Kind == to.Kind {
				owners[i].APIVersion = to.GroupVersion().String()
			}
		}
		want.SetOwnerReferences(owners)
		now = withoutServerFields(now)
		for _, u := range []*unstructured.Unstructured{want, now} {
			u.SetManagedFields(nil)
			u.SetAnnotations(withoutRecords(u.GetAnnotations()))
		}
		assert.Empty(t, cmp.Diff(want.Object, now.Object), "%s %s", obj.GetKind(), obj.GetName())
	}
	o.Pass(t, r, primary...)
	assert.Empty(t, o.Requests.Take(), "it is done once")
	return requests
}

// withoutRecords removes the annotations of the library from a map, and returns it.
func withoutRecords(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "opblocks.dev/") })
	return annotations
}

// primary returns the objects of a kind in the dump, in the version that the scheme has, with their names alone.
func (r *Restored) primary(t *testing.T, kind string) (all []client.Object) {
	t.Helper()
	for _, obj := range r.objects {
		if obj.GetKind() != kind {
			continue
		}
		versions := r.Scheme().VersionsForGroupKind(obj.GroupVersionKind().GroupKind())
		require.Len(t, versions, 1, "the versions of %s in the scheme", kind)
		typed, err := r.Scheme().New(versions[0].WithKind(kind))
		require.NoError(t, err)
		named := typed.(client.Object)
		named.SetNamespace(obj.GetNamespace())
		named.SetName(obj.GetName())
		all = append(all, named)
	}
	require.NotEmpty(t, all, "the dump has no %s", kind)
	return all
}
