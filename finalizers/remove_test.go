package finalizers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
)

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
		"Ours": {
			reason: "others' stay in their order",
			have:   []string{theirs, account, database},
			names:  []string{account},
			want:   want{Finalizers: []string{theirs, database}, Removed: true, Requests: 1},
		},
		"Several": {
			reason: "several are one request",
			have:   []string{account, theirs, database},
			names:  []string{account, database},
			want:   want{Finalizers: []string{theirs}, Removed: true, Requests: 1},
		},
		"Last": {
			reason: "an object that is not being deleted stays without finalizers",
			have:   []string{account},
			names:  []string{account},
			want:   want{Removed: true, Requests: 1},
		},
		"Absent": {
			reason: "what is not there costs no request",
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
				t.Errorf("in memory is what is stored: -stored +memory:\n%s", diff)
			}
		})
	}
}

func TestRemoveTheLastOfADeletedObject(t *testing.T) {
	c := newFake(deletedUser(account))
	obj := read(t, c)
	removed, err := finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err)
	require.True(t, removed)
	require.Empty(t, obj.Finalizers)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
}

func TestRemoveFromAnObjectThatIsGone(t *testing.T) {
	c := newFake(user(account, theirs))
	obj := read(t, c)
	obj.Name = "gone"
	removed, err := finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err, "somebody else removed it")
	require.False(t, removed)
	require.Equal(t, []string{theirs}, obj.Finalizers)
}

func TestRemoveFromAStaleObject(t *testing.T) {
	c := newFake(user(account))
	stale := read(t, c)
	_, err := finalizers.Ensure(t.Context(), c, read(t, c), theirs)
	require.NoError(t, err)

	removed, err := finalizers.Remove(t.Context(), c, stale, account)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `remove finalizer "example.com/account" from ConfigMap shop/ann: `)
	require.False(t, removed)
	require.Equal(t, []string{account, theirs}, read(t, c).Finalizers, "the finalizer that was added meanwhile stays")
}
