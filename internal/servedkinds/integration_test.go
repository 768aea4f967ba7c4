package servedkinds

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// If the operator may watch CustomResourceDefinitions, it notices changes at once. Two of its controllers watch the same kind.
func TestKindsFollowDefinitions(t *testing.T) {
	env := newTestEnv(t)
	rules := env.install(t, "Rule")
	env.create(t, "Rule", "r0")
	o := env.newOperator(t, controlPlane(t).Config())
	one, two, rule := o.watch(t, "Monitor"), o.watch(t, "Monitor"), o.watch(t, "Rule")
	o.start(t)
	rule.passes(t, "r0")
	one.isStarted(t)
	two.isStarted(t)
	require.False(t, one.reads())
	require.False(t, one.hasInformer(t), "a kind that is not served has no informer")
	require.Eventually(t, func() bool { _, known := o.kinds.definitions.uid("rules", env.group); return known }, eventually, often)

	for _, name := range []string{"a", "b"} { // another name each time: the deletion of an object of the deleted kind is an event too
		appeared := time.Now()
		monitors := env.install(t, "Monitor")
		one.isWatched(t, true)
		two.isWatched(t, true)
		t.Logf("watched after %s", time.Since(appeared).Round(time.Millisecond))
		one.passes(t, "all")
		two.passes(t, "all")
		env.create(t, "Monitor", name)
		one.passes(t, name)
		two.passes(t, name)
		require.Equal(t, []string{name}, one.names(t, name))

		// The definition is deleted while an object of its kind exists.
		env.uninstall(t, monitors)
		one.isWatched(t, false)
		two.isWatched(t, false)
		one.passes(t, "all")
		two.passes(t, "all")
		one.hasNoInformer(t)
	}
	errorsSoFar := len(runtimeLog().about("Monitor"))

	// The watch of the other kind is not affected: its informer is not started again, and its events arrive.
	require.True(t, rule.reads())
	env.create(t, "Rule", "r1")
	rule.passes(t, "r1")
	require.Len(t, rule.names(t, "r0"), 1)

	// If only one version of a kind is no longer served, its watch stops as if the kind was not served any more.
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(rules), rules))
	rules.Spec.Versions[0].Served = false
	require.NoError(t, env.client.Update(t.Context(), rules))
	rule.isWatched(t, false)
	rule.hasNoInformer(t)
	rules.Spec.Versions[0].Served = true
	require.NoError(t, env.client.Update(t.Context(), rules))
	rule.isWatched(t, true)
	rule.passes(t, "r1")

	require.Len(t, runtimeLog().about("Monitor"), errorsSoFar, "nothing retries a kind that is gone")
	o.stop()
	noGoroutines(t)
	require.False(t, managers.Has(o.mgr))
}

// A definition is deleted and created again at once. The new informer must not have objects of the deleted definition.
func TestKindsOfReplacedDefinition(t *testing.T) {
	env := newTestEnv(t)
	crd := env.install(t, "Monitor")
	env.create(t, "Monitor", "before")
	o := env.newOperator(t, controlPlane(t).Config())
	c := o.watch(t, "Monitor")
	o.start(t)
	c.isWatched(t, true)
	require.Len(t, c.names(t, "before"), 1)
	uid := func() types.UID {
		o.kinds.mu.Lock()
		defer o.kinds.mu.Unlock()
		return c.Watch.kind.shown.definition
	}
	require.Eventually(t, func() bool { return uid() == crd.UID }, eventually, often)
	former := "before"
	for _, name := range []string{"first", "second", "third"} {
		env.uninstall(t, crd)
		crd = env.install(t, "Monitor")
		env.create(t, "Monitor", name)
		require.Eventually(t, func() bool { return c.reads() && uid() == crd.UID }, eventually, often)
		c.passes(t, name)
		require.Empty(t, c.names(t, former))
		require.Len(t, c.names(t, name), 1)
		former = name
	}
}

// An operator has no permission outside of its namespace, so it uses discovery only. Its cache is limited to the namespace.
func TestKindsWithoutPermission(t *testing.T) {
	env := newTestEnv(t)
	o := env.newOperator(t, env.account(t), env.namespace)
	o.kinds.period = time.Second
	c := o.watch(t, "Monitor")
	o.start(t)
	c.isStarted(t)
	require.False(t, c.reads())
	for _, name := range []string{"a", "b"} {
		crd := env.install(t, "Monitor")
		c.isWatched(t, true)
		c.passes(t, "all")
		env.create(t, "Monitor", name)
		c.passes(t, name)
		require.Equal(t, []string{name}, c.names(t, name))
		env.uninstall(t, crd)
		c.isWatched(t, false)
		c.hasNoInformer(t)
	}
	_, known := o.kinds.definitions.uid("monitors", env.group)
	require.False(t, known)
	o.stop()
	noGoroutines(t)
}

// If the operator may not watch definitions, it does not notice that a definition was replaced between two checks. The informer recovers by
// itself.
func TestKindsOfReplacedDefinitionWithoutPermission(t *testing.T) {
	env := newTestEnv(t)
	crd := env.install(t, "Monitor")
	env.create(t, "Monitor", "before")
	o := env.newOperator(t, env.account(t), env.namespace)
	o.kinds.period = time.Hour
	c := o.watch(t, "Monitor")
	o.start(t)
	c.isWatched(t, true)
	c.passes(t, "before")
	env.uninstall(t, crd)
	env.install(t, "Monitor")
	env.create(t, "Monitor", "after")
	c.passes(t, "after")
	require.Empty(t, c.names(t, "before"))
}

// While objects with a finalizer keep a deleted definition from being removed, its kind counts as not served.
func TestKindsOfDefinitionBeingDeleted(t *testing.T) {
	env := newTestEnv(t)
	crd := env.install(t, "Monitor")
	obj := env.create(t, "Monitor", "a")
	obj.SetFinalizers([]string{"example.com/cleanup"})
	require.NoError(t, env.client.Update(t.Context(), obj))
	o := env.newOperator(t, controlPlane(t).Config())
	c := o.watch(t, "Monitor")
	o.start(t)
	c.isWatched(t, true)
	require.NoError(t, env.client.Delete(t.Context(), crd))
	c.isWatched(t, false)
	c.hasNoInformer(t)
	require.Eventually(t, func() bool {
		if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return false
		}
		obj.SetFinalizers(nil)
		return env.client.Update(t.Context(), obj) == nil
	}, eventually, often, "the object can still be let go")
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(env.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	}, eventually, often)
	env.install(t, "Monitor")
	c.isWatched(t, true)
	require.Empty(t, c.names(t, "a"))
}
