package ownedresources

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// hashBound is the size in bytes above which the cache of these operators keeps a hash instead of a value.
const hashBound = 64 << 10

var largeContent = strings.Repeat("0123456789abcdef", hashBound/8)

// contentConfigMap and contentSecret build a child with the text in the shop's spec.content.
func contentConfigMap(owner *Shop) *corev1.ConfigMap {
	m := NewConfigMap(owner, map[string]string{"content": owner.Spec.Content})
	m.Name = "content"
	return m
}

func contentSecret(owner *Shop) *corev1.Secret {
	s := NewSecret(owner, map[string][]byte{"content": []byte("secret " + owner.Spec.Content)})
	s.Name = "content"
	return s
}

// newHashingManager returns a manager whose cache holds the namespace of the test, and keeps hashes instead of large
// values.
func (env *serverEnv) newHashingManager(t *testing.T, options cache.Options) ctrl.Manager {
	t.Helper()
	options.DefaultNamespaces = map[string]cache.Config{env.Namespace: {}}
	mgr, err := reconcile.NewManager(env.Requests.Wrap(env.Plane.Config()), ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), Cache: options,
		Controller: config.Controller{SkipNameValidation: new(true)}, GracefulShutdownTimeout: new(controlplane.Patience),
	}, reconcile.HashLargeValues(hashBound))
	require.NoError(t, err)
	return mgr
}

// hashingOperator is an operator whose children have values larger than hashBound.
type hashingOperator struct {
	*serverEnv
	mgr    ctrl.Manager
	passes atomic.Value // the annotation of the owner at the last reconcile
}

const annotationPass = "example.com/pass"

func startHashing(t *testing.T) *hashingOperator {
	t.Helper()
	o := &hashingOperator{serverEnv: newServerEnv(t)}
	o.setSpec(t, withContent(largeContent))
	o.mgr = o.newHashingManager(t, reconcile.CacheOptions())
	require.NoError(t, reconcile.For(o.mgr,
		reconcile.Named("children", Ensure(Build(contentConfigMap), Build(contentSecret))),
		reconcile.Named("passes", reconcile.Func(func(_ context.Context, _ client.Client, owner *Shop) error {
			o.passes.Store(owner.Annotations[annotationPass])
			return nil
		}))).WithoutStatus().Complete())
	startManager(t, o.mgr)
	waitFor(t, o.serverEnv, contentSecret(o.Owner).DeepCopy(), exists)
	return o
}

// pass changes an annotation of the owner, which changes no child. It returns the requests of the reconcile that the
// change triggers.
func (o *hashingOperator) pass(t *testing.T, number string) []string {
	t.Helper()
	o.Requests.Sent()
	change(t, o.serverEnv, o.Owner, func(owner *Shop) { metav1.SetMetaDataAnnotation(&owner.ObjectMeta, annotationPass, number) })
	require.Eventually(t, func() bool { return o.passes.Load() == number }, controlplane.Patience, 10*time.Millisecond)
	return o.Requests.Sent()
}

func (o *hashingOperator) key() client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: "content"}
}

// waitHashed waits until the ConfigMap in the cache satisfies a function.
func (o *hashingOperator) waitHashed(t *testing.T, is func(*corev1.ConfigMap) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		var m corev1.ConfigMap
		return o.mgr.GetClient().Get(t.Context(), o.key(), &m) == nil && is(&m)
	}, controlplane.Patience, 10*time.Millisecond)
}

func isAsDesired(m *corev1.ConfigMap) bool { return m.Data["content"] == largeContent }

func TestHashedChildCostsNoRequest(t *testing.T) {
	o := startHashing(t)
	o.waitHashed(t, isAsDesired)
	for _, number := range []string{"first", "second"} {
		require.Empty(t, o.pass(t, number), "the children are compared by their hashes")
	}
	drift := contentConfigMap(o.Owner)
	change(t, o.serverEnv, drift, func(m *corev1.ConfigMap) { m.Data["content"] = largeContent + "by hand" })
	waitFor(t, o.serverEnv, drift, isAsDesired)
	change(t, o.serverEnv, drift, func(m *corev1.ConfigMap) { m.Data["theirs"] = largeContent })
	o.setSpec(t, withContent(largeContent+"2"))
	waitFor(t, o.serverEnv, drift, func(m *corev1.ConfigMap) bool { return m.Data["content"] == largeContent+"2" })
	require.Equal(t, largeContent, drift.Data["theirs"], "a value of another writer stays")
}

// Whoever reads or writes an object with the manager's client gets and sends the value itself, never the hash.
func TestHashedObjectIsReadWhole(t *testing.T) {
	o := startHashing(t)
	o.waitHashed(t, isAsDesired)
	c := o.mgr.GetClient()

	var m corev1.ConfigMap
	require.NoError(t, c.Get(t.Context(), o.key(), &m))
	m.Data["more"] = "1"
	require.NoError(t, c.Update(t.Context(), &m))
	var s corev1.Secret
	require.NoError(t, c.Get(t.Context(), o.key(), &s, client.UnsafeDisableDeepCopy))
	require.Equal(t, "secret "+largeContent, string(s.Data["content"]))
	var list corev1.ConfigMapList
	require.NoError(t, o.mgr.GetCache().List(t.Context(), &list, client.InNamespace(o.Namespace)))
	for _, item := range list.Items {
		require.True(t, item.Name != "content" || isAsDesired(&item))
	}
	live := contentConfigMap(o.Owner)
	waitFor(t, o.serverEnv, live, func(m *corev1.ConfigMap) bool { return m.Data["more"] == "1" })
	require.True(t, isAsDesired(live))

	informer, err := o.mgr.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
	require.NoError(t, err)
	shown := make(chan *corev1.ConfigMap, 10)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if m := obj.(*corev1.ConfigMap); m.Name == "content" {
			shown <- m.DeepCopy()
		}
	}})
	require.NoError(t, err)
	fromEvent := <-shown
	require.Less(t, len(fromEvent.Data["content"]), 100, "the cache has the hash alone")
	fromEvent.ResourceVersion = ""
	err = c.Update(t.Context(), fromEvent)
	require.True(t, apierrors.IsInvalid(err), err)
	require.ErrorContains(t, err, "read this object with the manager's client")
}

// An object has the labels and annotations of a child, but no owner reference. It is not treated as a child, however
// large it is.
func TestHashedForgery(t *testing.T) {
	o := startHashing(t)
	child := contentConfigMap(o.Owner)
	waitFor(t, o.serverEnv, child, isAsDesired)
	forged := namedConfigMap(o.Namespace, "forged")
	forged.Labels, forged.Annotations, forged.Data = child.Labels, child.Annotations, map[string]string{"content": largeContent + largeContent}
	o.Create(t, forged)
	o.pass(t, "after the forgery")
	var is corev1.ConfigMap
	require.NoError(t, o.Other.Get(t.Context(), client.ObjectKeyFromObject(forged), &is))
	require.Equal(t, forged.ResourceVersion, is.ResourceVersion)
}

func TestHashLargeValuesBound(t *testing.T) {
	for _, bound := range []int{0, -1} {
		_, err := reconcile.NewManager(controlPlane(t).Config(), ctrl.Options{}, reconcile.HashLargeValues(bound))
		require.ErrorContains(t, err, "the bound is a number of bytes, and must be positive: use 64 << 10")
	}
}

// If the cache's selector leaves an object out, the object is not created. Otherwise each reconcile would try to
// create it again.
func TestSelectorLeavesOutChild(t *testing.T) {
	tests := map[string]struct {
		reason   string
		options  cache.Options
		unlabels bool
		leftOut  bool
	}{
		"Children":      {"The builders set the labels.", cache.Options{ByObject: OnlyChildren(&Shop{}, &corev1.ConfigMap{})}, false, false},
		"WithoutLabels": {"This builder does not.", cache.Options{ByObject: OnlyChildren(&Shop{}, &corev1.ConfigMap{})}, true, true},
		"OfAnotherKind": {"Only ConfigMaps are selected.", cache.Options{ByObject: OnlyChildren(&Shop{}, &corev1.Service{})}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newServerEnv(t)
			observed := &observedSet{ChildSet: Ensure(Build(func(owner *Shop) *corev1.ConfigMap {
				m := contentConfigMap(owner)
				if test.unlabels {
					m.Labels = nil
				}
				return m
			}))}
			mgr := env.newHashingManager(t, test.options)
			require.NoError(t, reconcile.For(mgr, reconcile.Named("children", observed)).WithoutStatus().Complete())
			startManager(t, mgr)
			child := contentConfigMap(env.Owner)
			if !test.leftOut {
				waitFor(t, env, child, exists)
				return
			}
			var hidden *NotCachedError
			observed.waitForError(t, func(err error) bool { return errors.As(err, &hidden) })
			require.EqualError(t, hidden, "ConfigMap "+env.Namespace+"/content is not created: the cache would never show it, since its labels do not match "+
				`"app.kubernetes.io/managed-by=shop-operator,app.kubernetes.io/name=shop", which is asked for by the option Cache.ByObject or `+
				"Cache.DefaultLabelSelector of the manager; set these labels in the function that builds it, or widen the option", test.reason)
			require.Equal(t, "NotInCache", hidden.Reason())
			require.True(t, apierrors.IsNotFound(env.Other.Get(t.Context(), client.ObjectKeyFromObject(child), child)))
		})
	}
}
