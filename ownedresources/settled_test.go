package ownedresources

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// cachedPass is a reconcile of package reconcile whose object is as the cache has it.
type cachedPass struct{ passcontext.Pass }

func (cachedPass) AsCached(client.Object) bool { return true }
func (cachedPass) OtherBuilderOf(context.Context, schema.GroupKind, types.NamespacedName) (string, string) {
	return "", ""
}
func (cachedPass) KeepAnnotation(string, string)                 {}
func (cachedPass) AnnotationKeptBy(string) (string, bool)        { return "", false }
func (cachedPass) AfterSteps(do func(ctx context.Context) error) { _ = do(context.Background()) }

// inPass returns a context as package reconcile passes it to a step.
func inPass(t *testing.T) context.Context {
	t.Helper()
	return passcontext.NewContext(t.Context(), cachedPass{})
}

// settledEnv has a set that has nothing to do for its owner.
type settledEnv struct {
	*serverEnv
	set   *ChildSet[*Shop]
	built int
	value string // an impure function adds it to the content of a child
}

func newSettledEnv(t *testing.T) *settledEnv {
	env := &settledEnv{serverEnv: newEnvInMemory(t)}
	env.write(t, "source", "one")
	env.set = Ensure(
		Build(func(owner *Shop) *configMap {
			env.built++
			return constant("built", owner.Spec.Content+env.value)(owner)
		}),
		copied(content("source", Reads(&configMap{}, names("source")))))
	env.set.SetName("step")
	for range 2 { // the first reconcile creates and prunes, the second one finds nothing to do
		require.False(t, env.settled(t))
		require.NoError(t, env.set.Reconcile(inPass(t), env.Client, env.Owner))
		env.shown()
	}
	require.True(t, env.settled(t))
	return env
}

func (env *settledEnv) settled(t *testing.T) bool {
	return env.set.set.Settled(t.Context(), env.Client, env.Owner)
}

// resync sends an update event of the owner without a change, and returns the queue of the controller.
func (env *settledEnv) resync(t *testing.T) *controllertest.Queue {
	t.Helper()
	q := &controllertest.Queue{TypedInterface: workqueue.NewTyped[ctrl.Request]()}
	env.set.set.ObserveOwners().Update(t.Context(), event.UpdateEvent{ObjectOld: env.Owner, ObjectNew: env.Owner}, q)
	return q
}

// shown makes the set forget its own writes. The cache's events would do that too.
func (env *settledEnv) shown() {
	for _, name := range []string{"built", "copied"} {
		env.set.set.Applier.Writes.Forget(&configMap{}, types.NamespacedName{Namespace: env.Namespace, Name: name})
	}
}

func TestSettled(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(t *testing.T, env *settledEnv)
	}{
		"ChildChanged": {"A child of another version may have drifted.", func(t *testing.T, env *settledEnv) {
			env.write(t, "built", "by hand")
		}},
		"ChildDeleted": {"A child that is gone has to be created.", func(t *testing.T, env *settledEnv) {
			require.NoError(t, env.Other.Delete(t.Context(), &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "built"}}))
		}},
		"ChildReplaced": {"An object of the same name is another one.", func(t *testing.T, env *settledEnv) {
			live := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}}
			require.True(t, env.Exists(t, live))
			require.NoError(t, env.Other.Delete(t.Context(), live))
			live.ResourceVersion, live.UID = "", ""
			require.NoError(t, env.Other.Create(t.Context(), live))
		}},
		"OwnerChanged": {"The children depend on the owner.", func(t *testing.T, env *settledEnv) {
			env.Owner.Spec.Content = "two"
			require.NoError(t, env.Other.Update(t.Context(), env.Owner))
		}},
		"OwnerStatusWritten": {"The version is compared, not the generation: labels and status count too.", func(t *testing.T, env *settledEnv) {
			env.Owner.Labels = map[string]string{"team": "blue"}
			require.NoError(t, env.Other.Update(t.Context(), env.Owner))
		}},
		"InputChanged": {"The children depend on their inputs.", func(t *testing.T, env *settledEnv) {
			env.write(t, "source", "two")
		}},
		"InputMissing": {"So does what happens without them.", func(t *testing.T, env *settledEnv) {
			require.NoError(t, env.Other.Delete(t.Context(), &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "source"}}))
		}},
		"EventOfTheOwner": {"A resync looks at everything.", func(t *testing.T, env *settledEnv) {
			env.resync(t)
		}},
		"EventOfAChild": {"So does that of a child.", func(t *testing.T, env *settledEnv) {
			live := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}}
			require.True(t, env.Exists(t, live))
			kind, err := env.set.set.Kind(live, env.Client.Scheme())
			require.NoError(t, err)
			kind.Observe().Update(event.UpdateEvent{ObjectOld: live, ObjectNew: live})
		}},
		"OwnWriteNotShown": {"The cache lacks what the set has written.", func(t *testing.T, env *settledEnv) {
			live := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}}
			require.True(t, env.Exists(t, live))
			live.ResourceVersion += "9"
			env.set.set.Applier.Writes.Record(live)
		}},
		"AnotherOwner": {"Nothing is known of an object that was deleted and created again.", func(t *testing.T, env *settledEnv) {
			env.Owner = env.Owner.DeepCopy()
			env.Owner.UID = "another"
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newSettledEnv(t)
			test.change(t, env)
			env.built = 0
			require.False(t, env.settled(t), test.reason)
			require.Zero(t, env.built, "nothing is built to find out")
		})
	}
}

// To find out whether it has something to do, the set reads the child into an unstructured object that it has used
// before. That object must still have its kind.
func TestSettledUnstructured(t *testing.T) {
	env := newEnvInMemory(t)
	set := Ensure(Build(func(*Shop) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}
		u.SetName("untyped")
		return u
	}).Kind(corev1.SchemeGroupVersion.WithKind("ConfigMap")))
	for range 3 {
		require.NoError(t, set.Reconcile(inPass(t), env.Client, env.Owner))
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		set.set.Applier.Writes.Forget(u, types.NamespacedName{Namespace: env.Namespace, Name: "untyped"})
	}
	for range 3 {
		require.True(t, set.set.Settled(t.Context(), env.Client, env.Owner))
	}
}

// An event may come during a reconcile, for a change that the reconcile has not seen. Then the set is not skipped the
// next time.
func TestSettledIsDisturbedByAnEvent(t *testing.T) {
	env := newEnvInMemory(t)
	s := Ensure(Build(settings))
	disturbing := Ensure(Build(func(owner *Shop) *configMap {
		before := owner.DeepCopy()
		before.ResourceVersion = "1"
		s.set.ObserveOwners().Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: owner}, nil)
		return settings(owner)
	}))
	disturbing.set.Applier, disturbing.set.Owners = s.set.Applier, s.set.Owners
	for range 3 {
		require.NoError(t, disturbing.Reconcile(inPass(t), env.Client, env.Owner))
		s.set.Applier.Writes.Forget(&configMap{}, types.NamespacedName{Namespace: env.Namespace, Name: "web-settings"})
	}
	require.False(t, s.set.Settled(t.Context(), env.Client, env.Owner))
	require.NoError(t, s.Reconcile(inPass(t), env.Client, env.Owner))
	require.True(t, s.set.Settled(t.Context(), env.Client, env.Owner))
}

// A set that waits or fails is never skipped.
func TestSettledIsSuccess(t *testing.T) {
	env := newEnvInMemory(t)
	waits := Ensure(Build(func(*Shop) *corev1.Service { return env.Service() }).ReadyWhen("Never"))
	for range 3 {
		require.Error(t, waits.Reconcile(inPass(t), env.Client, env.Owner))
		waits.set.Applier.Writes.Forget(&corev1.Service{}, client.ObjectKeyFromObject(env.Owner))
		require.False(t, waits.set.Settled(t.Context(), env.Client, env.Owner))
	}
}

func TestCheckPurity(t *testing.T) {
	env := newSettledEnv(t)
	var reported []error
	ctx := passcontext.WithPurityCheck(t.Context(), func(err error) { reported = append(reported, err) })
	require.True(t, env.set.set.Settled(ctx, env.Client, env.Owner))
	require.Empty(t, reported, "the functions are pure so far")
	env.value = "from a global"
	require.True(t, env.set.set.Settled(ctx, env.Client, env.Owner))
	require.Len(t, reported, 1)
	require.ErrorContains(t, reported[0], "ConfigMap "+env.Namespace+"/built: it is built in another way, although neither the owner, nor what an input reads, nor a child has changed")
}
