package ownedresources

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile"
)

// cacheEnv runs passes of package reconcile against the server in memory. Their cache shows what the test wants.
type cacheEnv struct {
	client.Client               // reads from the cache
	server        client.Client // of somebody else
	shown         map[string]client.Object
	reads         int // of whole objects past the cache
	clock         *clocktesting.FakePassiveClock
	reconciler    *reconcile.Reconciler[*budget]
	set           *ChildSet[*budget]
	queue         *controllertest.Queue
	impure        []error // what passes have found
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
	for _, list := range []client.ObjectList{&policyv1.PodDisruptionBudgetList{}, newList(&configMap{}, schema.FromAPIVersionAndKind("v1", "ConfigMap"), scheme.Scheme)} {
		require.NoError(t, env.server.List(t.Context(), list, client.InNamespace("default")))
		for _, obj := range itemsOf(list) {
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
		env.set.observeOwners().Create(context.Background(), event.CreateEvent{Object: obj}, env.queue)
		return
	}
	env.set.observe().Create(event.CreateEvent{Object: obj})
}

func (env *cacheEnv) updated(before, after client.Object) {
	if _, owner := after.(*budget); owner {
		env.set.observeOwners().Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, env.queue)
		return
	}
	env.set.observe().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func (env *cacheEnv) deleted(obj client.Object) {
	if _, owner := obj.(*budget); owner {
		env.set.observeOwners().Delete(context.Background(), event.DeleteEvent{Object: obj}, env.queue)
		return
	}
	env.set.observe().Delete(event.DeleteEvent{Object: obj})
}

// pass runs one pass, and notes what it finds of functions that are not pure.
func (env *cacheEnv) pass(t *testing.T) ctrl.Result {
	t.Helper()
	ctx := passcontext.WithPurityCheck(t.Context(), func(err error) { env.impure = append(env.impure, err) })
	result, err := env.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: budgetName})
	require.NoError(t, err)
	return result
}

// converge runs passes until there is nothing to do, which the last of them remembers.
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
	return env.set.Settled(t.Context(), env, env.cachedOwner())
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
func hold(name string, content func(owner *budget) string) *Child[*budget] {
	return Build(func(owner *budget) *configMap {
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"content": content(owner)}}
	})
}

func labelOf(owner *budget) string { return owner.Labels["content"] }

// Whatever others do, and however late and silent the cache is, the next pass over what the cache shows brings everything to
// the desired state.
func TestSettledMissesNothing(t *testing.T) {
	tests := map[string]struct {
		reason string
		attack func(t *testing.T, env *cacheEnv)
		check  func(t *testing.T, env *cacheEnv)
	}{
		"ChildChanged": {
			reason: "The event of the change is hidden by a filter.",
			attack: func(t *testing.T, env *cacheEnv) {
				child := env.child(t, "built")
				child.Data["content"] = "by hand"
				require.NoError(t, env.server.Update(t.Context(), child))
			},
		},
		"ChildDeleted": {
			reason: "So is that of a deletion.",
			attack: func(t *testing.T, env *cacheEnv) {
				require.NoError(t, env.server.Delete(t.Context(), env.child(t, "built")))
			},
		},
		"ChildReplaced": {
			reason: "Another object has the name and the content, and is not ours.",
			attack: func(t *testing.T, env *cacheEnv) {
				child := env.child(t, "built")
				require.NoError(t, env.server.Delete(t.Context(), child))
				child.UID, child.ResourceVersion, child.Data["content"] = "", "", "by hand"
				require.NoError(t, env.server.Create(t.Context(), child))
			},
		},
		"ReadyRemoved": {
			reason: "Somebody removes the condition from the status.",
			attack: func(t *testing.T, env *cacheEnv) {
				owner := env.owner(t)
				owner.Status.Conditions = nil
				require.NoError(t, env.server.Status().Update(t.Context(), owner))
			},
		},
		"ReadyChanged": {
			reason: "Somebody changes it.",
			attack: func(t *testing.T, env *cacheEnv) {
				owner := env.owner(t)
				meta.SetStatusCondition(&owner.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ByHand"})
				require.NoError(t, env.server.Status().Update(t.Context(), owner))
			},
		},
		"OwnerChanged": {
			reason: "A label does not change the generation.",
			attack: func(t *testing.T, env *cacheEnv) {
				owner := env.owner(t)
				owner.Labels = map[string]string{"content": "two"}
				require.NoError(t, env.server.Update(t.Context(), owner))
			},
			check: func(t *testing.T, env *cacheEnv) { require.Equal(t, "two", env.child(t, "built").Data["content"]) },
		},
		"OwnerRecreated": {
			reason: "The owner is another one, and its children are gone or still those of the first.",
			attack: func(t *testing.T, env *cacheEnv) {
				require.NoError(t, env.server.Delete(t.Context(), env.owner(t)))
				require.NoError(t, env.server.Create(t.Context(), &budget{ObjectMeta: metav1.ObjectMeta{
					Namespace: budgetName.Namespace, Name: budgetName.Name, Labels: map[string]string{"content": "two"},
				}}))
				env.showSilently(t)
				env.pass(t)
				for _, name := range []string{"built", "other"} {
					if child := env.child(t, name); !metav1.IsControlledBy(child, env.owner(t)) { // the garbage collector's work
						require.NoError(t, env.server.Delete(t.Context(), child))
					}
				}
			},
			check: func(t *testing.T, env *cacheEnv) { require.Equal(t, "two", env.child(t, "built").Data["content"]) },
		},
		"PauseEnds": {
			reason: "Nothing changes when the time comes: only the clock does.",
			attack: func(t *testing.T, env *cacheEnv) {
				owner := env.owner(t)
				owner.Annotations = map[string]string{reconcile.PausedAnnotation: env.clock.Now().Add(time.Hour).Format(time.RFC3339)}
				require.NoError(t, env.server.Update(t.Context(), owner))
				for range 2 {
					env.showSilently(t)
					require.NotZero(t, env.pass(t), "the pass that ends the pause")
				}
				require.True(t, meta.IsStatusConditionTrue(env.owner(t).Status.Conditions, "Paused"))
				child := env.child(t, "built")
				child.Data["content"] = "while paused"
				require.NoError(t, env.server.Update(t.Context(), child))
				env.clock.SetTime(env.clock.Now().Add(2 * time.Hour))
			},
			check: func(t *testing.T, env *cacheEnv) {
				require.Nil(t, meta.FindStatusCondition(env.owner(t).Status.Conditions, "Paused"))
			},
		},
		"ChildOfALateRequest": {
			reason: "A request for a child that is not desired any more takes effect after the others were pruned.",
			attack: func(t *testing.T, env *cacheEnv) {
				late := env.child(t, "built")
				late.Name, late.UID, late.ResourceVersion = "late", "", ""
				require.NoError(t, env.server.Create(t.Context(), late))
				env.show(t)
			},
			check: func(t *testing.T, env *cacheEnv) {
				err := env.server.Get(t.Context(), types.NamespacedName{Namespace: budgetName.Namespace, Name: "late"}, &configMap{})
				require.True(t, apierrors.IsNotFound(err), "it is pruned")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newCacheEnv(t, Ensure(hold("built", labelOf), hold("other", func(*budget) string { return "constant" })))
			env.converge(t)
			require.True(t, env.isSettled(t))
			want := env.child(t, "built").Data["content"]
			tc.attack(t, env)
			for range 4 {
				env.showSilently(t)
				env.pass(t)
			}
			require.True(t, meta.IsStatusConditionTrue(env.owner(t).Status.Conditions, "Ready"), tc.reason)
			if tc.check == nil {
				require.Equal(t, want, env.child(t, "built").Data["content"], tc.reason)
				require.True(t, metav1.IsControlledBy(env.child(t, "built"), env.owner(t)))
			} else {
				tc.check(t, env)
			}
			require.Empty(t, env.impure)
		})
	}
}

// What a pass has found is remembered only if it worked on the owner as the cache shows it.
func TestSettledIsOfTheCachedOwner(t *testing.T) {
	t.Run("OwnWriteNotShown", func(t *testing.T) {
		env := newCacheEnv(t, Ensure(hold("built", labelOf)))
		for range 4 {
			env.show(t)
			for key, shown := range env.shown { // the cache shows the children, and the owner without the status that we wrote
				if owner, ok := shown.(*budget); ok && owner.ResourceVersion != "" {
					old := owner.DeepCopy()
					old.Status, old.ResourceVersion = policyv1.PodDisruptionBudgetStatus{}, "1"
					env.shown[key] = old
				}
			}
			env.pass(t)
		}
		env.showSilently(t)
		require.False(t, env.isSettled(t), "those passes worked on our own write, which the cache did not show")
		env.pass(t)
		require.True(t, env.isSettled(t))
	})
	t.Run("StepBefore", func(t *testing.T) {
		runs := 0
		set := Ensure(hold("built", func(owner *budget) string { runs++; return owner.Labels["in memory"] }))
		env := newCacheEnvOf(t, set, reconcile.Named("before", reconcile.Func(func(_ context.Context, _ client.Client, owner *budget) error {
			owner.Labels = map[string]string{"in memory": "two"}
			return nil
		})), reconcile.Named("children", set))
		env.converge(t)
		require.False(t, env.isSettled(t), "the set has not built from what the cache shows")
		runs = 0
		env.pass(t)
		require.Equal(t, 1, runs)
		require.Equal(t, "two", env.child(t, "built").Data["content"])
	})
	t.Run("SetBefore", func(t *testing.T) {
		other := Ensure(hold("other", labelOf))
		set := Ensure(hold("built", labelOf))
		env := newCacheEnvOf(t, set, reconcile.Named("before", other), reconcile.Named("children", set))
		env.show(t)
		for range 4 { // the other set sees no events, so its writes are forgotten after a time
			env.pass(t)
			env.show(t)
			for _, s := range []*ChildSet[*budget]{set, other} {
				s.applier.writes.Forget(&configMap{}, types.NamespacedName{Namespace: budgetName.Namespace, Name: "other"})
			}
		}
		env.pass(t)
		require.True(t, env.isSettled(t), "another set does not change the owner")
	})
	t.Run("OutsideOfAPass", func(t *testing.T) {
		set := Ensure(hold("built", labelOf))
		env := newCacheEnv(t, set)
		for range 4 {
			env.show(t)
			require.NoError(t, set.Reconcile(t.Context(), env, env.cachedOwner().DeepCopy()))
		}
		require.False(t, env.isSettled(t), "nobody can tell whether the object was changed in memory")
	})
}

// A function that panics leaves nothing behind, and does not disturb later passes.
func TestSettledAfterAPanic(t *testing.T) {
	panics := false
	env := newCacheEnv(t, Ensure(hold("built", func(owner *budget) string {
		if panics {
			panic("on purpose")
		}
		return labelOf(owner)
	})))
	env.converge(t)
	panics = true
	env.updated(env.cachedOwner(), env.cachedOwner()) // a resync
	env.pass(t)
	require.False(t, env.isSettled(t))
	panics = false
	env.converge(t)
	require.True(t, env.isSettled(t))
}

// The watch that triggers the reconcile and the one that forgets have goroutines of their own. So the reconcile of a resync may
// be left out before the resync is noted, and there is another one.
func TestResyncEnqueuesASettledOwner(t *testing.T) {
	env := newCacheEnv(t, Ensure(hold("built", labelOf)))
	env.converge(t)
	require.Zero(t, env.queue.Len(), "other events are noted by their versions")
	resync := func() { env.updated(env.cachedOwner(), env.cachedOwner()) }
	resync()
	require.Equal(t, 1, env.queue.Len())
	request, _ := env.queue.Get()
	require.Equal(t, budgetName, request.NamespacedName)
	env.queue.Done(request)
	resync()
	require.Zero(t, env.queue.Len(), "no reconcile can have been left out")
}

// Two reconcilers that share a set may reconcile an owner at once. An event that comes while both run is not lost when the first
// of them ends.
func TestSettledOfTwoReconcilesAtOnce(t *testing.T) {
	m := newOwnerMemory(&versions{})
	m.beginList("o")
	m.endList("o", 7)
	found := func() *settledOwner { return &settledOwner{version: "1"} }
	first, second := m.begin("o"), m.begin("o")
	m.observe("o")
	m.end("o", first, found())
	require.Nil(t, m.settledOf("o"))
	m.end("o", second, found())
	require.Nil(t, m.settledOf("o"))
	m.end("o", m.begin("o"), found())
	require.NotNil(t, m.settledOf("o"), "the next one is not disturbed")
	first = m.begin("o")
	m.forget(&configMap{ObjectMeta: metav1.ObjectMeta{UID: "o"}})
	m.end("o", first, found())
	require.Empty(t, m.byUID, "an owner that is gone is not remembered")
}

// The children are listed again if one comes or goes while they are listed.
func TestListAgain(t *testing.T) {
	m := newOwnerMemory(&versions{})
	child := &configMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "o", Controller: new(true)}}}}
	for name, event := range map[string]func(client.Object){"Appeared": m.childAppeared, "Deleted": m.childDeleted} {
		t.Run(name, func(t *testing.T) {
			m.beginList("o")
			event(child)
			m.endList("o", 7)
			require.False(t, m.isPruned("o", 7))
			require.Empty(t, m.byUID)
			m.beginList("o")
			m.endList("o", 7)
			require.True(t, m.isPruned("o", 7))
		})
	}
}

// A watch that was interrupted shows an object that was deleted and created again as one update.
func TestUpdateToAnotherUID(t *testing.T) {
	env := newCacheEnv(t, Ensure(hold("built", labelOf)))
	env.converge(t)
	m := env.set.applier
	owner := env.cachedOwner()
	another := owner.DeepCopy()
	another.UID = "another"
	require.NotEmpty(t, m.owners.byUID)
	env.updated(owner, another)
	require.Empty(t, m.owners.byUID, "the first owner is gone")

	env.converge(t)
	child := env.child(t, "built")
	require.NotEmpty(t, m.children.byUID)
	anotherChild := child.DeepCopy()
	anotherChild.UID = "another"
	env.updated(child, anotherChild)
	require.Empty(t, m.children.byUID, "the first child is gone")
}

// An API server that was restored from a backup issues versions again, for other contents.
func TestSettledAfterVersionsWentBack(t *testing.T) {
	const issuedAgain = "the version is one that was known with another content"
	restore := func(t *testing.T, obj client.Object) (before, after client.Object) { // of any object that a watch shows
		t.Helper()
		before, after = obj, obj.DeepCopyObject().(client.Object)
		after.SetResourceVersion("1")
		return before, after
	}
	t.Run("Owner", func(t *testing.T) {
		env := newCacheEnv(t, Ensure(hold("built", labelOf)))
		env.converge(t)
		before, after := restore(t, env.cachedOwner())
		env.shown[keyFor(after, budgetName)] = after
		require.False(t, env.isSettled(t), "it is another version")
		env.shown[keyFor(before, budgetName)] = before
		require.True(t, env.isSettled(t))
		other := &budget{ObjectMeta: metav1.ObjectMeta{Name: "other", ResourceVersion: "9"}}
		env.updated(restore(t, other))
		require.False(t, env.isSettled(t), issuedAgain)
		env.pass(t)
		require.True(t, env.isSettled(t))
	})
	t.Run("Child", func(t *testing.T) {
		env := newCacheEnv(t, Ensure(hold("built", labelOf)))
		env.converge(t)
		drifted := env.child(t, "built")
		drifted.Data["content"] = "another"
		env.shown[keyFor(drifted, client.ObjectKeyFromObject(drifted))] = drifted
		require.True(t, env.isSettled(t), "no operator could tell, and nothing has shown yet that versions are issued again")
		env.updated(restore(t, env.child(t, "built")))
		require.False(t, env.isSettled(t), issuedAgain)
		version := env.child(t, "built").ResourceVersion
		env.pass(t)
		require.NotEqual(t, version, env.child(t, "built").ResourceVersion, "it is compared, and so it is applied")
	})
	t.Run("Input", func(t *testing.T) {
		calls := 0
		env := newInputEnv(t, func(string, *budget) (string, error) { calls++; return "", nil })
		env.converge(t)
		calls = 0
		env.pass(t)
		require.Equal(t, 1, calls, "by the check of purity alone")
		env.updated(restore(t, env.child(t, "built")))
		env.pass(t)
		require.Equal(t, 2, calls, "it is read again")
	})
}

// newInputEnv is an operator that builds from a Secret, which is read past the cache and remembered.
func newInputEnv[S any](t *testing.T, read func(secret string, owner *budget) (S, error), build ...func(value S) string) *cacheEnv {
	t.Helper()
	secrets := func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "source"}} }
	input := From(func(ctx context.Context, r client.Reader, owner *budget) (value S, err error) {
		source := sourceSecret()
		if err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "source"}, source); err != nil {
			return value, err
		}
		return read(string(source.Data["content"]), owner)
	}, Reads(&corev1.Secret{}, secrets))
	set := Ensure(BuildFrom(input, func(owner *budget, value S) (*configMap, error) {
		content := "constant"
		if len(build) > 0 {
			content = build[0](value)
		}
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}, Data: map[string]string{"content": content}}, nil
	}))
	env := newCacheEnv(t, set)
	env.writeSource(t, "one")
	return env
}

func sourceSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: budgetName.Namespace, Name: "source"}}
}

func (env *cacheEnv) writeSource(t *testing.T, content string) {
	t.Helper()
	source := sourceSecret()
	err := env.server.Get(t.Context(), client.ObjectKeyFromObject(source), source)
	source.Data = map[string][]byte{"content": []byte(content)}
	if apierrors.IsNotFound(err) {
		require.NoError(t, env.server.Create(t.Context(), source))
		return
	}
	require.NoError(t, err)
	require.NoError(t, env.server.Update(t.Context(), source))
}

// A value may keep a part of the owner: it is a part of a copy, which is not used again.
func TestInputKeepsThePartOfAnOwner(t *testing.T) {
	type settings struct {
		Spec *policyv1.PodDisruptionBudgetSpec
	}
	seen := []string{}
	env := newInputEnv(t, func(_ string, owner *budget) (settings, error) { return settings{&owner.Spec}, nil }, func(s settings) string {
		seen = append(seen, s.Spec.MinAvailable.String())
		return s.Spec.MinAvailable.String()
	})
	owner := env.owner(t)
	owner.Spec.MinAvailable = new(intstr.FromInt32(3))
	require.NoError(t, env.server.Update(t.Context(), owner))
	env.converge(t)
	env.writeSource(t, "two") // which does not change the value, but its version
	env.pass(t)               // left out after the input was read again
	require.True(t, env.isSettled(t))
	env.pass(t)
	env.updated(env.cachedOwner(), env.cachedOwner()) // a resync builds from the value
	env.pass(t)
	require.Equal(t, []string{"3"}, slices.Compact(seen))
	require.Equal(t, "3", env.child(t, "built").Data["content"])
	require.Empty(t, env.impure)
}

// A function of an input that changes the owner changes a copy, and not what the cache shows.
func TestInputChangesTheOwner(t *testing.T) {
	env := newInputEnv(t, func(content string, owner *budget) (string, error) {
		if owner.Labels == nil {
			owner.Labels = map[string]string{}
		}
		owner.Labels["by"] = "the input"
		return content, nil
	})
	owner := env.owner(t)
	owner.Labels = map[string]string{"of": "the-owner"}
	require.NoError(t, env.server.Update(t.Context(), owner))
	env.converge(t)
	env.writeSource(t, "two")
	env.pass(t)
	require.Equal(t, map[string]string{"of": "the-owner"}, env.cachedOwner().Labels)
}

// always is a type whose values say that they are equal.
type always struct{ Content string }

func (always) Equal(always) bool { return true }

// An input that says that it has not changed is found out, or changes nothing.
func TestInputsThatLie(t *testing.T) {
	t.Run("Equal", func(t *testing.T) {
		env := newInputEnv(t, func(content string, _ *budget) (always, error) { return always{content}, nil }, func(v always) string { return v.Content })
		env.converge(t)
		env.writeSource(t, "two")
		env.pass(t)
		require.Equal(t, "two", env.child(t, "built").Data["content"], "values are compared field by field")
	})
	t.Run("NaN", func(t *testing.T) {
		zero := 0.0
		env := newInputEnv(t, func(string, *budget) (float64, error) { return zero / zero, nil }, func(float64) string { return "constant" })
		for range 5 {
			env.show(t)
			env.pass(t)
		}
		require.False(t, env.isSettled(t), "it never equals itself, so the set is never left out")
		require.Equal(t, "constant", env.child(t, "built").Data["content"])
	})
	t.Run("ChangedInPlace", func(t *testing.T) {
		shared := map[string]string{"content": "one"}
		env := newInputEnv(t, func(string, *budget) (map[string]string, error) { return shared, nil },
			func(v map[string]string) string { return v["content"] })
		env.converge(t)
		shared["content"] = "two"
		env.pass(t)
		require.Len(t, env.impure, 1)
		require.ErrorContains(t, env.impure[0], "ConfigMap default/built: it is built in another way, although neither the owner nor an input nor a child has changed")
	})
	t.Run("ChangedByTheBuilder", func(t *testing.T) {
		env := newInputEnv(t, func(content string, _ *budget) (map[string]string, error) {
			return map[string]string{"content": content}, nil
		},
			func(v map[string]string) string { v["content"] += "!"; return "constant" })
		env.show(t)
		env.pass(t)
		env.show(t)
		for range 4 {
			env.pass(t)
		}
		require.NotEmpty(t, env.impure)
		require.ErrorContains(t, env.impure[0], "child ConfigMap: its input has another value than it would have if it were read now")
	})
	t.Run("FromAGlobal", func(t *testing.T) {
		global := "one"
		env := newInputEnv(t, func(string, *budget) (string, error) { return global, nil }, func(v string) string { return v })
		env.converge(t)
		global = "two"
		env.pass(t)
		require.Len(t, env.impure, 1, "the value is remembered for the version of the Secret")
		require.ErrorContains(t, env.impure[0], "its input has another value than it would have if it were read now")
	})
	t.Run("CachesItsText", func(t *testing.T) {
		type size struct{ Quantity *resource.Quantity }
		env := newInputEnv(t, func(string, *budget) (size, error) { return size{resource.NewQuantity(1000, resource.DecimalSI)}, nil },
			func(v size) string { return v.Quantity.String() }) // which changes the quantity
		env.converge(t)
		require.True(t, env.isSettled(t))
	})
	t.Run("StaleCache", func(t *testing.T) {
		env := newInputEnv(t, func(content string, _ *budget) (string, error) { return content, nil }, func(v string) string { return v })
		env.converge(t)
		known := env.metadataOf(t, "source")
		env.writeSource(t, "two")
		env.server = staleMetadata{env.server, known}
		env.pass(t)
		require.Empty(t, env.impure, "the API server has another version than the cache, so another value says nothing")
	})
}

// staleMetadata is a client whose cache of metadata is behind.
type staleMetadata struct {
	client.Client
	known *metav1.PartialObjectMetadata
}

func (c staleMetadata) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok && name.Name == c.known.Name {
		c.known.DeepCopyInto(m)
		return nil
	}
	return c.Client.Get(ctx, name, obj, opts...)
}

func (env *cacheEnv) metadataOf(t *testing.T, name string) *metav1.PartialObjectMetadata {
	t.Helper()
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind("v1", "Secret"))
	require.NoError(t, env.server.Get(t.Context(), types.NamespacedName{Namespace: budgetName.Namespace, Name: name}, m))
	return m
}

// A filter that keeps an object does not see another one in it later.
func TestFilterKeepsAnObject(t *testing.T) {
	env := newCacheEnv(t, Ensure(hold("built", labelOf)))
	var kept []*budget
	env.reconciler.WithFilter(func(b *budget) bool { kept = append(kept, b); return true })
	env.converge(t)
	for _, b := range kept {
		require.Equal(t, budgetName.Name, b.Name)
	}
}

// A function that is not pure is found where a pass would be left out, whatever it depends on.
func TestImpureBuilders(t *testing.T) {
	global, calls := "", 0
	all := map[string]string{}
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m n o p q r s t u v w x y z") {
		all[name] = name
	}
	tests := map[string]struct {
		build func(*budget) string
		then  func()
	}{
		"Global":   {func(*budget) string { return global }, func() { global = "another" }},
		"Time":     {func(*budget) string { return time.Now().String() }, nil},
		"Random":   {func(*budget) string { return string(newUIDForTest(&calls)) }, nil},
		"MapOrder": {func(*budget) string { return strings.Join(slices.Collect(maps.Keys(all)), ",") }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			last, fixed := "", true // pure until the passes have found nothing to do
			env := newCacheEnv(t, Ensure(hold("other", labelOf), hold("built", func(owner *budget) string {
				if !fixed {
					return tc.build(owner)
				}
				if last == "" {
					last = tc.build(owner)
				}
				return last
			})))
			env.converge(t)
			fixed = false
			if tc.then != nil {
				tc.then()
			}
			for range 3 { // two orders of a map may be the same
				env.pass(t)
			}
			require.NotEmpty(t, env.impure)
			require.ErrorContains(t, env.impure[0], "ConfigMap default/built: it is built in another way, although neither the owner nor an input nor a child has changed")
		})
	}
}

func newUIDForTest(calls *int) types.UID {
	*calls++
	return types.UID(strings.Repeat("x", *calls))
}

// A set whose kinds may not be served is left out while the same kinds are served.
func TestSettledIfServed(t *testing.T) {
	builds := 0
	env := newCacheEnv(t, Ensure(Build(func(*budget) *configMap {
		builds++
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}}
	}, IfServed("Served"))))
	expect := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		env.converge(t)
		require.True(t, env.isSettled(t))
		builds = 0
		_, err := env.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: budgetName})
		require.NoError(t, err)
		require.Zero(t, builds, "the set is left out")
		condition := meta.FindStatusCondition(env.owner(t).Status.Conditions, "Served")
		require.NotNil(t, condition)
		require.Equal(t, [2]string{string(status), reason}, [2]string{string(condition.Status), condition.Reason})
	}
	expect(metav1.ConditionTrue, reasonKindServed)
	env.unserved = "ConfigMap"
	require.False(t, env.isSettled(t), "the kind is not served any more")
	expect(metav1.ConditionFalse, reasonKindNotServed)
	env.unserved = ""
	require.False(t, env.isSettled(t), "the kind is served again")
	expect(metav1.ConditionTrue, reasonKindServed)
}

// A set with ExpandVolumes is left out while no volume has to grow.
func TestSettledExpandVolumes(t *testing.T) {
	env := newCacheEnv(t, Ensure(Build(func(owner *budget) *appsv1.StatefulSet {
		labels := map[string]string{"app": owner.Name}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "built"}, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "server", Image: "server:1"}},
			}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		}}
		claim := &set.Spec.VolumeClaimTemplates[0].Spec
		claim.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		if owner.Labels["size"] != "" {
			claim.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(owner.Labels["size"])
		}
		return set
	}, ExpandVolumes())))
	live := func() *appsv1.StatefulSet {
		t.Helper()
		set := &appsv1.StatefulSet{}
		require.NoError(t, env.server.Get(t.Context(), types.NamespacedName{Namespace: budgetName.Namespace, Name: "built"}, set))
		return set
	}
	env.show(t)
	env.pass(t)
	set := live()
	set.Status.ObservedGeneration = set.Generation
	require.NoError(t, env.server.Status().Update(t.Context(), set))
	env.converge(t)
	require.True(t, env.isSettled(t))
	owner := env.owner(t)
	owner.Labels = map[string]string{"size": "2Gi"}
	require.NoError(t, env.server.Update(t.Context(), owner))
	env.showSilently(t)
	require.False(t, env.isSettled(t), "the volume has to grow")
}
