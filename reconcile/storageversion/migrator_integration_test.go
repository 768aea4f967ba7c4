package storageversion

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestMigrateObjects proves, by the data in etcd, that a migration stores each object in the new version, and changes nothing else
// in it.
func TestMigrateObjects(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 5)
	require.NoError(t, f.c.Create(t.Context(), f.object("v1", "new", 1)), "stored in v1 by its creation")
	before := f.read("v1", "w0")
	requests := 0
	m := f.migrator(beforeWrites(f.c, func(client.Object) error { requests++; return nil }))
	require.NoError(t, f.finish(m))

	first := readStored(t, f.cp, f.group, "widgets")
	require.Len(t, first, 6)
	for name, object := range first {
		assert.Equal(t, f.group+"/v1", object.apiVersion, name)
	}
	after := f.read("v1", "w0")
	assert.NotEqual(t, before.GetResourceVersion(), after.GetResourceVersion())
	after.SetResourceVersion(before.GetResourceVersion())
	assert.Empty(t, cmp.Diff(before, after), "also managedFields and the generation")

	crd := f.readDefinition()
	assert.Equal(t, []string{"v1"}, crd.Status.StoredVersions)
	assert.Equal(t, apiextensionsv1.ConditionFalse, condition(crd).Status)
	assert.Equal(t, reasonSucceeded, condition(crd).Reason)
	assert.Equal(t, "All objects are stored in version v1", condition(crd).Message)

	// Another replica that has not seen the end of the first walk may begin a second one.
	again := f.migrator(f.c)
	require.NoError(t, again.walk(t.Context(), crd, true))
	require.NoError(t, f.finish(m))
	require.NoError(t, f.finish(f.migrator(f.c)), "of the next process")
	assert.Equal(t, first, readStored(t, f.cp, f.group, "widgets"), "a second walk stores nothing")
	assert.Equal(t, crd.ResourceVersion, f.readDefinition().ResourceVersion)
	assert.Equal(t, []float64{6, 0, 0}, f.counts())
	assert.Equal(t, 8, requests, "one write for each object, and two of the CustomResourceDefinition")
}

// TestKilled ends a process right before or after each of its writes. It proves that the next process finishes the
// migration.
func TestKilled(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 3)
	killed := errors.New("killed")
	for request := 1; ; request++ {
		require.Less(t, request, 20)
		f.define(version{"v1alpha1", true, true}, version{"v1", true, false})
		for i := range 3 {
			require.NoError(t, f.apply(f.object("v1alpha1", fmt.Sprintf("w%d", i), int64(request+1)), "user"))
		}
		f.define(version{"v1alpha1", true, false}, version{"v1", true, true})
		left := request
		err := f.finish(f.migrator(beforeWrites(f.c, func(client.Object) error {
			if left--; left <= 0 {
				return killed
			}
			return nil
		})))
		if err == nil {
			assert.Equal(t, 6, request, "three objects and two writes of the CustomResourceDefinition were killed")
			return
		}
		require.ErrorIs(t, err, killed)
		assert.ElementsMatch(t, []string{"v1alpha1", "v1"}, f.readDefinition().Status.StoredVersions, "killed at write %d", request)
		require.NoError(t, f.finish(f.migrator(f.c)))
		assert.Equal(t, []string{"v1"}, f.readDefinition().Status.StoredVersions)
		for name, object := range readStored(t, f.cp, f.group, "widgets") {
			assert.Equal(t, f.group+"/v1", object.apiVersion, "%s, after a kill at write %d", name, request)
		}
	}
}

// TestRolledBack proves that storedVersions does not change if the storage version changes while objects are written.
func TestRolledBack(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 3)
	rolledBack := false
	m := f.migrator(beforeWrites(f.c, func(obj client.Object) error {
		if obj.GetName() == "w1" && !rolledBack {
			rolledBack = true
			f.define(version{"v1alpha1", true, true}, version{"v1", true, false})
		}
		return nil
	}))
	require.ErrorIs(t, f.finish(m), errChanged)
	assert.Equal(t, []string{"v1alpha1", "v1"}, f.readDefinition().Status.StoredVersions)
	require.NoError(t, f.finish(m), "the way back is a migration too")
	assert.Equal(t, []string{"v1alpha1"}, f.readDefinition().Status.StoredVersions)
	for name, object := range readStored(t, f.cp, f.group, "widgets") {
		assert.Equal(t, f.group+"/v1alpha1", object.apiVersion, name)
	}
}

// TestRefusedObject proves that the condition names an object that cannot be written, and that all other objects are written.
func TestRefusedObject(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 3)
	refuse := true
	m := f.migrator(beforeWrites(f.c, func(obj client.Object) error {
		if obj.GetName() == "w1" && refuse {
			return apierrors.NewForbidden(apiextensionsv1.Resource("widgets"), "w1", errors.New("a webhook denies it"))
		}
		return nil
	}))
	require.ErrorContains(t, f.finish(m), f.namespace+"/w1: ")
	crd := f.readDefinition()
	assert.Equal(t, reasonFailed, condition(crd).Reason)
	assert.Contains(t, condition(crd).Message, "/w1: ")
	assert.Contains(t, condition(crd).Message, "a webhook denies it")
	assert.Equal(t, []string{"v1alpha1", "v1"}, crd.Status.StoredVersions)
	stored := readStored(t, f.cp, f.group, "widgets")
	assert.Equal(t, f.group+"/v1alpha1", stored["w1"].apiVersion)
	assert.Equal(t, f.group+"/v1", stored["w2"].apiVersion)

	assert.Equal(t, []float64{2, 1, 0}, f.counts())
	require.Error(t, f.finish(m))
	assert.Equal(t, crd.ResourceVersion, f.readDefinition().ResourceVersion, "the same message is not written again")
	refuse = false
	require.NoError(t, f.finish(m))
	assert.Equal(t, reasonSucceeded, condition(f.readDefinition()).Reason)
}

// TestRemovedVersion proves what the API server does with the managers of a removed version. It also proves that after a repair
// server-side apply works again, and managers own the same fields as before.
func TestRemovedVersion(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 1)
	applied := f.object("v1alpha1", "w0", 2)
	applied.SetLabels(map[string]string{"app": "shop"})
	require.NoError(t, f.apply(applied, "applier"))
	require.NoError(t, f.finish(f.migrator(f.c)))
	f.define(version{"v1", true, true})

	err := f.apply(f.object("v1", "w0", 2), "applier")
	require.ErrorContains(t, err, "request to convert CR to an invalid group/version", "the reason for the repair")

	require.NoError(t, f.finish(f.migrator(f.c)))
	for _, entry := range f.read("v1", "w0").GetManagedFields() {
		assert.Equal(t, f.group+"/v1", entry.APIVersion)
	}
	generation := f.read("v1", "w0").GetGeneration()
	require.NoError(t, f.apply(f.object("v1", "w0", 2), "applier"))
	live := f.read("v1", "w0")
	assert.Equal(t, generation, live.GetGeneration())
	assert.Empty(t, live.GetLabels(), "the applier still owned the label, and has removed it")
}

// TestUnreadableObject: the conversion webhook fails for one object, so the API server cannot convert it to the storage version. The
// test proves that the page of objects is read in another version, and that only the write of this object fails.
func TestUnreadableObject(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 3)
	broken := apierrors.NewInternalError(errors.New("conversion webhook failed for w1"))
	m := f.migrator(interceptor.NewClient(f.c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Version == "v1" {
				return broken
			}
			return c.List(ctx, list, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if obj.GetName() == "w1" {
				return broken
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}))
	require.ErrorContains(t, f.finish(m), "/w1: ")
	stored := readStored(t, f.cp, f.group, "widgets")
	assert.Equal(t, f.group+"/v1", stored["w0"].apiVersion)
	assert.Equal(t, f.group+"/v1alpha1", stored["w1"].apiVersion)
	assert.Equal(t, f.group+"/v1", stored["w2"].apiVersion)
	assert.ElementsMatch(t, []string{"v1alpha1", "v1"}, f.readDefinition().Status.StoredVersions)
}

// TestExpiredToken proves that a walk continues, or begins again, if etcd has compacted the state at which its list
// began.
func TestExpiredToken(t *testing.T) {
	for name, offers := range map[string]bool{"GoesOn": true, "BeginsAgain": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withoutCluster(t), 5)
			expired := false
			require.NoError(t, f.finish(f.migrator(interceptor.NewClient(f.c, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					token := (&client.ListOptions{}).ApplyOptions(opts).Continue
					if token == "" || expired {
						return c.List(ctx, list, opts...)
					}
					expired = true
					err := apierrors.NewResourceExpired("the provided continue parameter is too old")
					if offers {
						err.ErrStatus.Continue = token
					}
					return err
				},
			}))))
			assert.True(t, expired)
			for name, object := range readStored(t, f.cp, f.group, "widgets") {
				assert.Equal(t, f.group+"/v1", object.apiVersion, name)
			}
		})
	}
}

// TestRemovedTooEarly: a version was removed while objects were stored in it, and somebody has removed it from storedVersions by hand.
// The test proves that these objects are found, and migrated when the version is back.
func TestRemovedTooEarly(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 1)
	live := f.definition()
	require.NoError(t, f.c.Status().Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1"]}}`))))
	f.define(version{"v1", true, true})
	require.ErrorContains(t, f.finish(f.migrator(f.c)), "request to convert CR from an invalid group/version")
	assert.Equal(t, reasonFailed, condition(f.readDefinition()).Reason)

	f.define(version{"v1alpha1", false, false}, version{"v1", true, true})
	require.NoError(t, f.finish(f.migrator(f.c)))
	assert.Equal(t, f.group+"/v1", readStored(t, f.cp, f.group, "widgets")["w0"].apiVersion)
	assert.Equal(t, reasonSucceeded, condition(f.readDefinition()).Reason)
}

// TestWithoutConversion proves that nothing is written if the write would lose data.
func TestWithoutConversion(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 1)
	m := f.migrator(f.c)
	m.conversions.converts = func() bool { return true }
	require.ErrorIs(t, f.finish(m), errNoConversion)
	assert.Equal(t, f.group+"/v1alpha1", readStored(t, f.cp, f.group, "widgets")["w0"].apiVersion)
	assert.Equal(t, errNoConversion.Error(), condition(f.readDefinition()).Message)
}

// TestTwoProcesses proves that it does no harm if a replica wrongly believes that it is the leader.
func TestTwoProcesses(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 6)
	ended := make(chan error, 2)
	for range cap(ended) {
		m := f.migrator(f.c)
		go func() { ended <- f.finish(m) }()
	}
	require.NoError(t, errors.Join(<-ended, <-ended))
	assert.Equal(t, []string{"v1"}, f.readDefinition().Status.StoredVersions)
	for name, object := range readStored(t, f.cp, f.group, "widgets") {
		assert.Equal(t, f.group+"/v1", object.apiVersion, name)
	}
}

// TestUnknownPath proves that it does no harm if a manager owns a path that the version does not have. That happens if a
// webhook converts a field to another one, and the manager gets the other version.
func TestUnknownPath(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 1)
	require.NoError(t, f.finish(f.migrator(f.c)))
	live := f.read("v1", "w0")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "applier", Operation: metav1.ManagedFieldsOperationApply, APIVersion: f.group + "/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:length":{},"f:size":{}}}`),
	}})
	require.NoError(t, f.c.Update(t.Context(), live))
	require.NoError(t, f.apply(f.object("v1", "w0", 3), "applier"))
	assert.Len(t, f.read("v1", "w0").GetManagedFields(), 1)
}

// beforeWrites returns a client that calls a function before each write.
func beforeWrites(c client.WithWatch, do func(client.Object) error) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := do(obj); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}
