package operatortest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Patience is for what should happen at once, on a machine that is busy with other tests.
	Patience = 45 * time.Second
	interval = 20 * time.Millisecond
)

// Eventually waits until everything that is asserted holds.
func Eventually(t testing.TB, what string, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, Patience, interval, what)
}

// Live reads an object that must be there, with nothing left of what it was.
func Live[T client.Object](t require.TestingT, c client.Reader, obj T) T {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	key := client.ObjectKeyFromObject(obj)
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	require.NoError(t, c.Get(context.Background(), key, obj))
	return obj
}

// Change edits an object by a merge patch, like kubectl edit.
func Change[T client.Object](t testing.TB, c client.Client, obj T, edit func(T)) {
	t.Helper()
	before := Live(t, c, obj).DeepCopyObject().(T)
	edit(obj)
	require.NoError(t, c.Patch(t.Context(), obj, client.MergeFrom(before)))
}
