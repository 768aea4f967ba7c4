package reconcile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// copyOf returns a set with a ConfigMap that has the content of a Secret.
func copyOf(secret string) *ownedresources.ChildSet[*budget] {
	input := ownedresources.From(func(ctx context.Context, r client.Reader, owner *budget) (string, error) {
		var read corev1.Secret
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: secret}, &read)
		return string(read.Data["content"]), err
	}, ownedresources.Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: secret}} }))
	return ownedresources.Ensure(ownedresources.BuildFrom(input, func(owner *budget, content string) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"content": content}}, nil
	}))
}

// A change of what an input reads triggers a reconcile. The cache holds its metadata only, and a pass in which nothing has
// changed sends no request.
func TestInputsAreWatched(t *testing.T) {
	setups := map[string]func(t *testing.T, mgr ctrl.Manager) ctrlreconcile.Reconciler{
		"Step": func(t *testing.T, mgr ctrl.Manager) ctrlreconcile.Reconciler {
			r := reconcile.New(mgr.GetClient(), reconcile.Named("copy", copyOf("source"))).WithoutStatus()
			b := ctrl.NewControllerManagedBy(mgr).For(&budget{}).Named("step")
			require.NoError(t, r.SetupWithBuilder(mgr, b))
			require.NoError(t, b.Complete(r))
			return r
		},
		"ReconcilerOfOnesOwn": func(t *testing.T, mgr ctrl.Manager) ctrlreconcile.Reconciler {
			set := copyOf("source")
			r := ctrlreconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
				var b budget
				if err := mgr.GetClient().Get(ctx, request.NamespacedName, &b); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				if err := set.Reconcile(ctx, mgr.GetClient(), &b); err != nil && !isWaiting(err) {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, nil
			})
			b := ctrl.NewControllerManagedBy(mgr).For(&budget{}).Named("own")
			require.NoError(t, set.SetupWithBuilder(mgr, b))
			require.NoError(t, b.Complete(r))
			return r
		},
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			r := setup(t, w.mgr)
			w.run(t)
			b := w.create(t, "a")
			source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "source"}, Data: map[string][]byte{"content": []byte("one")}}
			require.NoError(t, w.client.Create(t.Context(), source))
			requireCopied := func(content string) {
				require.Eventually(t, func() bool {
					var copied corev1.ConfigMap
					return w.client.Get(t.Context(), client.ObjectKeyFromObject(b), &copied) == nil && copied.Data["content"] == content
				}, eventually, often, content)
			}
			requireCopied("one")
			source.Data["content"] = []byte("two")
			require.NoError(t, w.client.Update(t.Context(), source))
			requireCopied("two")
			require.NoError(t, w.client.Delete(t.Context(), source))
			source = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "source"}, Data: map[string][]byte{"content": []byte("three")}}
			require.NoError(t, w.client.Create(t.Context(), source))
			requireCopied("three")

			require.EventuallyWithT(t, func(c *assert.CollectT) { // while the controller handles the last events, both may write
				w.count.Sent()
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				assert.NoError(c, err)
				assert.Empty(c, w.count.Sent())
			}, eventually, often, "a pass in which nothing has changed sends no request")
		})
	}
}

func isWaiting(err error) bool {
	_, ok := errors.AsType[*ownedresources.WaitingError](err)
	return ok
}
