package ownedresources

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
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

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile"
)

// cacheEnv runs passes of package reconcile against the server in memory. Their cache shows what the test wants.
type cacheEnv struct {
	client.Client               // reads from the cache
	server        client.Client // the client of somebody else
	shown         map[string]client.Object
	reads         int // the number of reads of whole objects past the cache
	clock         *clocktesting.FakePassiveClock
	reconciler    *reconcile.Reconciler[*budget]
	set           *ChildSet[*budget]
	queue         *controllertest.Queue
	impure        []error // the impure functions that passes have found
	unserved      string  // a kind that the API server does not serve
}

var budgetName = types.NamespacedName{Namespace: "default", Name: "web"}

func newCacheEnv(t *testing.T, set *ChildSet[*budget], more ...reconcile.NamedStep[*budget]) *cacheEnv {
	t.Helper()
	return newCacheEnvOf(t, set, append([]reconcile.NamedStep[*budget]{reconcile.Named("children", set)}, more...)...)
}

func newCacheEnvOf(t *testing.T, set *ChildSet[*budget], steps ...reconcile.NamedStep[*budget]) *cacheEnv {
	t.Helper()
	server, err := memoryserver.New(scheme.Scheme)
	require.NoError(t, err)
	env := &cacheEnv{
		Client: server.Client(), server: server.Client(), shown: map[string]client.Object{}, set: set,
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		queue: &controllertest.Queue{TypedInterface: workqueue.NewTyped[ctrl.Request]()},
	}
	env.reconciler = reconcile.New[*budget](env, steps...).WithClock(env.clock)
	require.NoError(t, server.Client().Create(t.Context(), &budget{ObjectMeta: metav1.ObjectMeta{Namespace: budgetName.Namespace, Name: budgetName.Name}}))
	return env
}

// Get reads from the cache, as a manager's client does. Whole objects of kinds that the test does not show are read from the
// server.
func (env *cacheEnv) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return env.server.Get(ctx, name, m)
	}
	if !env.isCached(obj) {
		env.reads++
		return env.server.Get(ctx, name, obj)
	}
	shown, ok := env.shown[keyFor(obj, name)]
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

// RESTMapper knows the kinds that are served.
func (env *cacheEnv) RESTMapper() meta.RESTMapper {
	return servedMapper{env.Client.RESTMapper(), env.unserved}
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

func (env *cacheEnv) isCached(obj client.Object) bool {
	switch obj.(type) {
	case *budget, *configMap:
		return true
	}
	return false
}

func keyFor(obj client.Object, name client.ObjectKey) string {
	return reflect.TypeOf(obj).String() + " " + name.String()
}

// stored returns all objects of the server that the cache can show.
func (env *cacheEnv) stored(t *testing.T) map[string]client.Object {
	t.Helper()
	all := map[string]client.Object{}
	for _, list := range []client.ObjectList{&policyv1.PodDisruptionBudgetList{}, set.NewList(&configMap{}, schema.FromAPIVersionAndKind("v1", "ConfigMap"), scheme.Scheme)} {
		require.NoError(t, env.server.List(t.Context(), list, client.InNamespace("default")))
		for _, obj := range set.ItemsOf(list) {
			all[keyFor(obj, client.ObjectKeyFromObject(obj))] = obj
		}
	}
	return all
}

// show makes the cache show what the server has, and sends the events.
func (env *cacheEnv) show(t *testing.T) {
	t.Helper()
	before := env.shown
	env.showSilently(t)
	for _, key := range slices.Sorted(maps.Keys(env.shown)) {
		was, is := before[key], env.shown[key]
		switch {
		case was == nil:
			env.created(is)
		case was.GetResourceVersion() != is.GetResourceVersion():
			env.updated(was, is)
		}
	}
	for key, was := range before {
		if env.shown[key] == nil {
			env.deleted(was)
		}
	}
}

// showSilently is show with a filter that hides the events.
func (env *cacheEnv) showSilently(t *testing.T) {
	t.Helper()
	env.shown = env.stored(t)
}

func (env *cacheEnv) created(obj client.Object) {
	if _, owner := obj.(*budget); owner {
		set.Watcher{Set: env.set.set}.ObserveOwners().Create(context.Background(), event.CreateEvent{Object: obj}, env.queue)
		return
	}
	set.Watcher{Set: env.set.set}.Observe().Create(event.CreateEvent{Object: obj})
}

func (env *cacheEnv) updated(before, after client.Object) {
	if _, owner := after.(*budget); owner {
		set.Watcher{Set: env.set.set}.ObserveOwners().Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, env.queue)
		return
	}
	set.Watcher{Set: env.set.set}.Observe().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func (env *cacheEnv) deleted(obj client.Object) {
	if _, owner := obj.(*budget); owner {
		set.Watcher{Set: env.set.set}.ObserveOwners().Delete(context.Background(), event.DeleteEvent{Object: obj}, env.queue)
		return
	}
	set.Watcher{Set: env.set.set}.Observe().Delete(event.DeleteEvent{Object: obj})
}

// pass runs one pass, and notes what it finds of functions that are not pure.
func (env *cacheEnv) pass(t *testing.T) ctrl.Result {
	t.Helper()
	ctx := passcontext.WithPurityCheck(t.Context(), func(err error) { env.impure = append(env.impure, err) })
	result, err := env.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: budgetName})
	require.NoError(t, err)
	return result
}

// converge runs passes until there is nothing to do. The last one remembers that.
func (env *cacheEnv) converge(t *testing.T) {
	t.Helper()
	for range 5 {
		env.show(t)
		env.pass(t)
	}
	require.Empty(t, env.impure)
}

func (env *cacheEnv) isSettled(t *testing.T) bool {
	t.Helper()
	return env.set.set.Settled(t.Context(), env, env.cachedOwner())
}

func (env *cacheEnv) cachedOwner() *budget { return env.shown[keyFor(&budget{}, budgetName)].(*budget) }

// owner returns the owner as the server has it.
func (env *cacheEnv) owner(t *testing.T) *budget {
	t.Helper()
	owner := &budget{}
	require.NoError(t, env.server.Get(t.Context(), budgetName, owner))
	return owner
}

func (env *cacheEnv) child(t *testing.T, name string) *configMap {
	t.Helper()
	child := &configMap{}
	require.NoError(t, env.server.Get(t.Context(), types.NamespacedName{Namespace: budgetName.Namespace, Name: name}, child))
	return child
}

// hold builds a ConfigMap of this name with what a function returns.
func hold(name string, content func(owner *budget) string) AnyChild[*budget] {
	return Build(func(owner *budget) *configMap {
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"content": content(owner)}}
	})
}

func labelOf(owner *budget) string { return owner.Labels["content"] }
