package reconcile_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// copyOf returns a set with a ConfigMap that has a copy of a Secret's content.
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

// A change of an object that an input reads triggers a reconcile. The cache holds only the metadata of the object. A
// pass in which nothing has changed sends no request.
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

			require.EventuallyWithT(t, func(c *assert.CollectT) { // while the controller handles the last events, the test and the controller may write
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

// gate holds back answers of the API server while it is closed.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

// held is the body of an answer. Reads of the body wait while the gate is closed.
type held struct {
	io.ReadCloser
	gate *gate
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.gate.wait()
	return n, err
}

// The manager's cache has an informer of the Secrets and another one of their metadata. The test holds one of them back. The object
// that an input reads is never older than the event that triggers the pass, so every change arrives.
func TestInputsWithTwoInformers(t *testing.T) {
	source := func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "source"}} }
	secretOf := func(input *ownedresources.Input[*budget, string]) *ownedresources.ChildSet[*budget] {
		return ownedresources.Ensure(ownedresources.BuildFrom(input, func(owner *budget, content string) (*corev1.Secret, error) {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string][]byte{"content": []byte(content)}}, nil
		}))
	}
	tests := map[string]struct {
		reason   string
		set      *ownedresources.ChildSet[*budget]
		want     func(source *corev1.Secret) string
		metadata bool // true: the informer of metadata is held back; false: the informer of whole Secrets
	}{
		"WholeObjectsBehind": {
			reason: "The set builds Secrets, so the cache holds whole ones.",
			set: secretOf(ownedresources.From(func(ctx context.Context, r client.Reader, owner *budget) (string, error) {
				var read corev1.Secret
				err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "source"}, &read)
				return string(read.Data["content"]), err
			}, ownedresources.Reads(&corev1.Secret{}, source))),
			want: func(source *corev1.Secret) string { return string(source.Data["content"]) },
		},
		"MetadataBehind": {
			reason: "Metadata is read of Secrets that the cache holds whole.",
			set:    secretOf(ownedresources.VersionHash(ownedresources.ReadsCached(&corev1.Secret{}, source))),
			want: func(source *corev1.Secret) string {
				var hashed corev1.Pod
				_, _ = ownedresources.SetHash(&hashed, "hash", [][3]string{{source.Name, string(source.UID), source.ResourceVersion}})
				return hashed.Annotations["hash"]
			},
			metadata: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			w := newEnvWith(t, func(config *rest.Config) *rest.Config {
				config = rest.CopyConfig(config)
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return transport(func(r *http.Request) (*http.Response, error) {
						answer, err := next.RoundTrip(r)
						isMetadata := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
						if err == nil && strings.HasSuffix(r.URL.Path, "/secrets") && r.URL.Query().Get("watch") != "" && isMetadata == test.metadata {
							answer.Body = held{answer.Body, g}
						}
						return answer, err
					})
				})
				return config
			})
			r := reconcile.New(w.mgr.GetClient(), reconcile.Named("copy", test.set)).WithoutStatus()
			b := ctrl.NewControllerManagedBy(w.mgr).For(&budget{}).Named("copy")
			require.NoError(t, r.SetupWithBuilder(w.mgr, b))
			require.NoError(t, b.Complete(r))
			shown := make(chan string, 100) // the versions of the Secret in the informer that is not held back
			prompt := client.Object(metadata("Secret"))
			behind := client.Object(&corev1.Secret{})
			if test.metadata {
				prompt, behind = behind, prompt
			}
			show := func(obj any) {
				if o, ok := obj.(client.Object); ok && o.GetName() == "source" {
					shown <- o.GetResourceVersion()
				}
			}
			for _, obj := range []client.Object{behind, prompt} {
				informer, err := w.mgr.GetCache().GetInformer(t.Context(), obj, cache.BlockUntilSynced(false))
				require.NoError(t, err)
				if obj == prompt {
					_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
						AddFunc: show, UpdateFunc: func(_, obj any) { show(obj) }, DeleteFunc: show,
					})
					require.NoError(t, err)
				}
			}
			w.run(t)
			t.Cleanup(g.reopen)
			owner := w.create(t, "a")
			change := func(send func() error) {
				g.shut()
				require.NoError(t, send())
				<-shown
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(owner)}) // as if the event of the informer that is not held back had triggered it
				require.NoError(t, err)
				g.reopen()
			}
			requireCopied := func(of *corev1.Secret) {
				t.Helper()
				require.Eventually(t, func() bool {
					var copied corev1.Secret
					return w.client.Get(t.Context(), client.ObjectKeyFromObject(owner), &copied) == nil && string(copied.Data["content"]) == test.want(of)
				}, eventually, often, test.reason)
			}
			newSource := func(content string) *corev1.Secret {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "source"}, Data: map[string][]byte{"content": []byte(content)}}
			}
			one := newSource("one")
			change(func() error { return w.client.Create(t.Context(), one) })
			requireCopied(one)
			one.Data["content"] = []byte("two")
			change(func() error { return w.client.Update(t.Context(), one) })
			requireCopied(one)
			change(func() error { return w.client.Delete(t.Context(), one) })
			three := newSource("three")
			change(func() error { return w.client.Create(t.Context(), three) })
			requireCopied(three)
		})
	}
}
