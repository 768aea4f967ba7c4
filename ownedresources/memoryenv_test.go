package ownedresources

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile"
)

// memoryEnv runs reconciles of package reconcile against a server in memory. They read from a cache, which the test
// controls.
type memoryEnv struct {
	server     *ownedtest.Server
	cache      *shownCache
	clock      *clocktesting.FakePassiveClock
	reconciler *reconcile.Reconciler[*Shop]
	set        *ChildSet[*Shop]
	queue      *controllertest.Queue
	impure     []error // errors about functions that are not pure
}

var shopName = client.ObjectKeyFromObject(newShop())

func newMemoryEnv(t *testing.T, set *ChildSet[*Shop], more ...reconcile.NamedStep[*Shop]) *memoryEnv {
	t.Helper()
	return newMemoryEnvOf(t, set, append([]reconcile.NamedStep[*Shop]{reconcile.Named("children", set)}, more...)...)
}

func newMemoryEnvOf(t *testing.T, set *ChildSet[*Shop], steps ...reconcile.NamedStep[*Shop]) *memoryEnv {
	t.Helper()
	env := &memoryEnv{
		server: ownedtest.NewInMemory(t, shopsFile), set: set,
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		queue: &controllertest.Queue{TypedInterface: workqueue.NewTyped[ctrl.Request]()},
	}
	env.cache = &shownCache{Client: env.server.Client, shown: map[string]client.Object{}}
	set.set.Cache = env.cache
	env.reconciler = reconcile.New[*Shop](env.cache, steps...).WithClock(env.clock)
	return env
}

// shownCache is a client that reads Shops and ConfigMaps from a cache. The test decides what the cache contains.
type shownCache struct {
	client.Client // reads from the server
	shown         map[string]client.Object
	reads         int    // the number of reads of whole objects from the server instead of the cache
	unserved      string // a kind that the API server does not serve
}

// Get reads from the cache, as a manager's client does. Whole objects of other kinds are read from the server.
func (c *shownCache) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return c.Client.Get(ctx, name, m)
	}
	if !isCached(obj) {
		c.reads++
		return c.Client.Get(ctx, name, obj)
	}
	shown, ok := c.shown[keyFor(obj, name)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: reflect.TypeOf(obj).String()}, name.Name)
	}
	options := (&client.GetOptions{}).ApplyOptions(opts)
	if options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		shown = shown.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(shown).Elem())
	return nil
}

// RESTMapper returns a mapper that does not know the kind c.unserved.
func (c *shownCache) RESTMapper() meta.RESTMapper {
	return servedMapper{c.Client.RESTMapper(), c.unserved}
}

type servedMapper struct {
	meta.RESTMapper
	unserved string
}

func (m servedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == m.unserved {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

func isCached(obj client.Object) bool {
	switch obj.(type) {
	case *Shop, *configMap:
		return true
	}
	return false
}

func keyFor(obj client.Object, name client.ObjectKey) string {
	return reflect.TypeOf(obj).String() + " " + name.String()
}

// stored returns all objects of the server that belong into the cache.
func (env *memoryEnv) stored(t *testing.T) map[string]client.Object {
	t.Helper()
	all := map[string]client.Object{}
	for _, list := range []client.ObjectList{&ShopList{}, set.NewList(&configMap{}, schema.FromAPIVersionAndKind("v1", "ConfigMap"), scheme.Scheme)} {
		require.NoError(t, env.server.Other.List(t.Context(), list, client.InNamespace("default")))
		for _, obj := range set.ItemsOf(list) {
			all[keyFor(obj, client.ObjectKeyFromObject(obj))] = obj
		}
	}
	return all
}

// show copies the server's objects into the cache, and sends the events.
func (env *memoryEnv) show(t *testing.T) {
	t.Helper()
	before := env.cache.shown
	env.showSilently(t)
	for _, key := range slices.Sorted(maps.Keys(env.cache.shown)) {
		was, is := before[key], env.cache.shown[key]
		switch {
		case was == nil:
			env.created(t, is)
		case was.GetResourceVersion() != is.GetResourceVersion():
			env.updated(t, was, is)
		}
	}
	for key, was := range before {
		if env.cache.shown[key] == nil {
			env.deleted(t, was)
		}
	}
}

// showSilently copies the server's objects into the cache and its indexes. It sends no events, as if a filter dropped them.
func (env *memoryEnv) showSilently(t *testing.T) {
	t.Helper()
	env.cache.shown = env.stored(t)
	for _, sample := range env.set.set.Watched() {
		gvk, err := env.cache.GroupVersionKindFor(sample)
		require.NoError(t, err)
		list := set.NewList(sample, gvk, env.cache.Scheme())
		require.NoError(t, env.server.Other.List(t.Context(), list))
		for _, obj := range set.ItemsOf(list) {
			env.watchedKind(t, obj).Index(obj)
		}
	}
}

func (env *memoryEnv) watchedKind(t *testing.T, child client.Object) set.WatchedKind {
	t.Helper()
	kind, err := env.set.set.Kind(child, env.cache.Scheme())
	require.NoError(t, err)
	return kind
}

func (env *memoryEnv) created(t *testing.T, obj client.Object) {
	if _, owner := obj.(*Shop); owner {
		env.set.set.ObserveOwners().Create(t.Context(), event.CreateEvent{Object: obj}, env.queue)
		return
	}
	env.watchedKind(t, obj).Observe().Create(event.CreateEvent{Object: obj})
}

func (env *memoryEnv) updated(t *testing.T, before, after client.Object) {
	if _, owner := after.(*Shop); owner {
		env.set.set.ObserveOwners().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, env.queue)
		return
	}
	env.watchedKind(t, after).Observe().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func (env *memoryEnv) deleted(t *testing.T, obj client.Object) {
	if _, owner := obj.(*Shop); owner {
		env.set.set.ObserveOwners().Delete(t.Context(), event.DeleteEvent{Object: obj}, env.queue)
		return
	}
	env.watchedKind(t, obj).Observe().Delete(event.DeleteEvent{Object: obj})
}

// pass runs one reconcile, and collects in impure the errors about functions that are not pure.
func (env *memoryEnv) pass(t *testing.T) ctrl.Result {
	t.Helper()
	ctx := passcontext.WithPurityCheck(t.Context(), func(err error) { env.impure = append(env.impure, err) })
	result, err := env.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: shopName})
	require.NoError(t, err)
	return result
}

// converge reconciles until nothing is left to do and the set remembers that.
func (env *memoryEnv) converge(t *testing.T) {
	t.Helper()
	for range 5 {
		env.show(t)
		env.pass(t)
	}
	require.Empty(t, env.impure)
}

func (env *memoryEnv) isSettled(t *testing.T) bool {
	t.Helper()
	return env.set.set.Settled(t.Context(), env.cache, env.cachedOwner())
}

func (env *memoryEnv) cachedOwner() *Shop { return env.cache.shown[keyFor(&Shop{}, shopName)].(*Shop) }

// owner returns the owner as the server has it.
func (env *memoryEnv) owner(t *testing.T) *Shop {
	t.Helper()
	owner := &Shop{}
	require.NoError(t, env.server.Other.Get(t.Context(), shopName, owner))
	return owner
}

func (env *memoryEnv) child(t *testing.T, name string) *configMap {
	t.Helper()
	child := &configMap{}
	require.NoError(t, env.server.Other.Get(t.Context(), types.NamespacedName{Namespace: shopName.Namespace, Name: name}, child))
	return child
}

// hold builds a ConfigMap of this name with the content that the function returns.
func hold(name string, content func(owner *Shop) string) AnyChild[*Shop] {
	return Build(func(owner *Shop) *configMap {
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"content": content(owner)}}
	})
}

func contentOfShop(owner *Shop) string { return owner.Spec.Content }
