package finalizers_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/finalizers"
)

func TestEnsure(t *testing.T) {
	type want struct {
		Finalizers []string
		Added      bool
		Requests   int
	}
	cases := map[string]struct {
		reason string
		names  []string
		have   []string
		want   want
	}{
		"First": {
			reason: "An object without finalizers gets its first.",
			names:  []string{account},
			want:   want{Finalizers: []string{account}, Added: true, Requests: 1},
		},
		"OthersStay": {
			reason: "The new finalizer is added at the end, the others keep their places.",
			names:  []string{account},
			have:   []string{theirs, database},
			want:   want{Finalizers: []string{theirs, database, account}, Added: true, Requests: 1},
		},
		"Present": {
			reason: "No request is sent if the finalizer is already there.",
			names:  []string{account},
			have:   []string{theirs, account},
			want:   want{Finalizers: []string{theirs, account}},
		},
		"Several": {
			reason: "Several are added by one request, and only those that are missing, each once.",
			names:  []string{account, database, theirs, database},
			have:   []string{theirs},
			want:   want{Finalizers: []string{theirs, account, database}, Added: true, Requests: 1},
		},
		"None": {
			reason: "Generic code may have no finalizer to add.",
			have:   []string{theirs},
			want:   want{Finalizers: []string{theirs}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(user(tc.have...))
			obj := read(t, c)
			added, err := finalizers.Ensure(t.Context(), c, obj, tc.names...)
			require.NoError(t, err)
			got := want{Finalizers: obj.Finalizers, Added: added, Requests: c.requests}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(read(t, c), obj); diff != "" {
				t.Errorf("the object in memory differs from the stored one: -stored +memory:\n%s", diff)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	cases := map[string]struct {
		reason     string
		have, want []string
		requests   int
	}{
		"Former":    {reason: "One request adds the new name and removes the former one.", have: []string{database, theirs}, want: []string{theirs, account}, requests: 1},
		"NotFormer": {reason: "An object without the former name gets the new one.", have: []string{theirs}, want: []string{theirs, account}, requests: 1},
		"Both":      {reason: "Something else still adds the former name, so it is left to the cleanup.", have: []string{account, database}, want: []string{account, database}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(user(tc.have...))
			obj := read(t, c)
			added, err := finalizers.Replace(t.Context(), c, obj, []string{database}, account)
			require.NoError(t, err)
			require.Equal(t, tc.requests == 1, added, tc.reason)
			require.Equal(t, tc.requests, c.requests, tc.reason)
			require.Equal(t, tc.want, obj.Finalizers, tc.reason)
			require.Equal(t, tc.want, read(t, c).Finalizers, tc.reason)
		})
	}
}

func TestEnsureKeepsChangesInMemory(t *testing.T) {
	c := newFake(user())
	obj := read(t, c)
	obj.Data = map[string]string{"status": "computed before the finalizer was added"}
	_, err := finalizers.Ensure(t.Context(), c, obj, account)
	require.NoError(t, err)
	require.Equal(t, "computed before the finalizer was added", obj.Data["status"])
	require.Empty(t, read(t, c).Data, "the change in memory is not written")
}

func TestEnsureDoesNotChangeTheArray(t *testing.T) {
	c := newFake(user(theirs))
	obj := read(t, c)
	list := append(make([]string, 0, 4), obj.Finalizers...)
	obj.Finalizers = list
	_, err := finalizers.Ensure(t.Context(), c, obj, account)
	require.NoError(t, err)
	require.Equal(t, []string{theirs, "", "", ""}, list[:4], "a shallow copy may share the array")
}

func TestEnsureInvalid(t *testing.T) {
	cases := map[string]struct {
		reason   string
		name     string
		obj      func(*testing.T, client.Client) client.Object
		is       func(error) bool
		says     string
		requests int
	}{
		"BeingDeleted": {
			reason: "The API server would refuse it too, with an error that looks like invalid input.",
			name:   account,
			obj:    func(t *testing.T, c client.Client) client.Object { return read(t, c) },
			is:     func(err error) bool { return errors.Is(err, finalizers.ErrBeingDeleted) },
			says:   `add finalizer "example.com/account" to ConfigMap shop/ann: the object is being deleted, which allows no new finalizers`,
		},
		"Stale": {
			reason: "An object that was changed since it was read is a conflict.",
			name:   account,
			obj: func(t *testing.T, c client.Client) client.Object {
				obj := read(t, c)
				obj.ResourceVersion, obj.DeletionTimestamp = "1", nil
				return obj
			},
			is:       apierrors.IsConflict,
			says:     `add finalizer "example.com/account" to ConfigMap shop/ann: `,
			requests: 1,
		},
		"Gone": {
			reason: "Nothing may be created for an object that is gone.",
			name:   account,
			obj: func(t *testing.T, c client.Client) client.Object {
				obj := read(t, c)
				obj.Name, obj.DeletionTimestamp = "bob", nil
				return obj
			},
			is:       apierrors.IsNotFound,
			says:     `add finalizer "example.com/account" to ConfigMap shop/bob: configmaps "bob" not found`,
			requests: 1,
		},
		"NeverRead": {
			reason: "Without a resource version, the finalizers of others could be overwritten.",
			name:   account,
			obj:    func(*testing.T, client.Client) client.Object { return user() },
			is:     func(error) bool { return true },
			says:   "the object has no resource version: read it from the API server first",
		},
		"NoDomain": {
			reason: "Kubernetes itself uses names without a domain.",
			name:   "orphan",
			obj:    func(t *testing.T, c client.Client) client.Object { return read(t, c) },
			is:     func(error) bool { return true },
			says:   `invalid finalizer "orphan": a domain of yours must stand before it, as in "example.com/account"`,
		},
		"NoName": {
			reason: "The rules for names are those of the API server.",
			name:   "Example.com/",
			obj:    func(t *testing.T, c client.Client) client.Object { return read(t, c) },
			is:     func(error) bool { return true },
			says:   `invalid finalizer "Example.com/": prefix part a lowercase RFC 1123 subdomain`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(deletedUser(theirs))
			added, err := finalizers.Ensure(t.Context(), c, tc.obj(t, c), tc.name)
			require.False(t, added)
			require.ErrorContains(t, err, tc.says, tc.reason)
			require.True(t, tc.is(err), "%s: %v", tc.reason, err)
			require.Equal(t, tc.requests, c.requests, "requests")
			require.Equal(t, []string{theirs}, read(t, c).Finalizers)
		})
	}
}

func TestEnsurePresentDuringDeletion(t *testing.T) {
	c := newFake(deletedUser(account))
	added, err := finalizers.Ensure(t.Context(), c, read(t, c), account)
	require.NoError(t, err)
	require.False(t, added)
}

func TestRemove(t *testing.T) {
	type want struct {
		Finalizers []string
		Removed    bool
		Requests   int
	}
	cases := map[string]struct {
		reason string
		have   []string
		names  []string
		want   want
	}{
		"One": {
			reason: "The others keep their order.",
			have:   []string{theirs, account, database},
			names:  []string{account},
			want:   want{Finalizers: []string{theirs, database}, Removed: true, Requests: 1},
		},
		"Several": {
			reason: "Several are removed by one request.",
			have:   []string{account, theirs, database},
			names:  []string{account, database},
			want:   want{Finalizers: []string{theirs}, Removed: true, Requests: 1},
		},
		"Last": {
			reason: "An object that is not being deleted stays, without finalizers.",
			have:   []string{account},
			names:  []string{account},
			want:   want{Removed: true, Requests: 1},
		},
		"Absent": {
			reason: "No request is sent if the finalizer is not there.",
			have:   []string{theirs},
			names:  []string{account},
			want:   want{Finalizers: []string{theirs}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(user(tc.have...))
			obj := read(t, c)
			removed, err := finalizers.Remove(t.Context(), c, obj, tc.names...)
			require.NoError(t, err)
			got := want{Finalizers: obj.Finalizers, Removed: removed, Requests: c.requests}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(read(t, c), obj); diff != "" {
				t.Errorf("the object in memory differs from the stored one: -stored +memory:\n%s", diff)
			}
		})
	}
}

// A client decodes the answer into the object that it was given. What the answer lacks stays in the object: a list, or a field of a list's item.
func TestRemoveTakesListsFromTheAnswer(t *testing.T) {
	c := interceptor.NewClient(newFake(user(account)), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return json.Unmarshal([]byte(`{"metadata": {"resourceVersion": "2000", "managedFields": [{"manager": "operator"}]}}`), obj)
		},
	})
	obj := read(t, c)
	obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status"}}
	_, err := finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err)
	require.Empty(t, obj.Finalizers)
	require.Equal(t, []metav1.ManagedFieldsEntry{{Manager: "operator"}}, obj.ManagedFields)
}

func TestRemoveLastDuringDeletion(t *testing.T) {
	c := newFake(deletedUser(account))
	obj := read(t, c)
	removed, err := finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err)
	require.True(t, removed)
	require.Empty(t, obj.Finalizers)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
}

func TestRemoveAbsentObject(t *testing.T) {
	c := newFake(user(account, theirs))
	obj := read(t, c)
	obj.Name = "gone"
	removed, err := finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err, "another client removed it")
	require.False(t, removed)
	require.Equal(t, []string{theirs}, obj.Finalizers)
}

func TestRemoveStaleObject(t *testing.T) {
	c := newFake(user(account))
	stale := read(t, c)
	_, err := finalizers.Ensure(t.Context(), c, read(t, c), theirs)
	require.NoError(t, err)

	removed, err := finalizers.Remove(t.Context(), c, stale, account)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `remove finalizer "example.com/account" from ConfigMap shop/ann: `)
	require.False(t, removed)
	require.Equal(t, []string{account, theirs}, read(t, c).Finalizers, "the finalizer that was added in between stays")
}
