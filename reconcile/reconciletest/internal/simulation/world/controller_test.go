package world

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// TestControllerRests has a controller that creates a Secret for each ConfigMap. It counts the controller's steps.
func TestControllerRests(t *testing.T) {
	server, err := memoryserver.New(clientgoscheme.Scheme)
	require.NoError(t, err)
	steps := 0
	w := New(Options{Scheme: clientgoscheme.Scheme, Server: server, Controllers: []func(context.Context, client.Client) error{
		func(ctx context.Context, c client.Client) error {
			steps++
			var all corev1.ConfigMapList
			if err := c.List(ctx, &all); err != nil {
				return err
			}
			for i := range all.Items {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: all.Items[i].Name}}
				if err := client.IgnoreAlreadyExists(c.Create(ctx, secret)); err != nil {
					return err
				}
			}
			return nil
		},
	}})
	now := w.Moment()
	step := func() int {
		t.Helper()
		steps = 0
		now.Revision = server.Revision()
		require.NoError(t, w.controllers[0].step(now))
		return steps
	}
	create := func(obj client.Object) {
		obj.SetNamespace("default")
		require.NoError(t, w.User.Create(t.Context(), obj))
	}
	assert.Equal(t, 1, step(), "the first")
	assert.Equal(t, 0, step(), "nothing has happened")
	create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	assert.Equal(t, 0, step(), "it has never asked for this kind")
	create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	assert.Equal(t, 1, step(), "it has listed this kind, and creates something")
	assert.Equal(t, 1, step(), "its last step has changed something")
	assert.Equal(t, 0, step(), "the last one has not")
	require.NoError(t, w.User.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}))
	assert.Equal(t, 1, step(), "it has tried to create this kind")
	assert.Equal(t, 1, step())
	now.Time = now.Time.Add(1)
	assert.Equal(t, 1, step(), "the clock has moved")
	now.Calls++
	assert.Equal(t, 1, step(), "something has been called outside of the cluster")
}
