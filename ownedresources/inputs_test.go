package ownedresources

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// names returns a function that returns the names of these objects in the owner's namespace.
func names(all ...string) func(*Shop) []types.NamespacedName {
	return func(*Shop) (found []types.NamespacedName) {
		for _, name := range all {
			found = append(found, types.NamespacedName{Name: name})
		}
		return found
	}
}

// content is an input that reads the field "content" of a ConfigMap.
func content(name string, reads ...Read[*Shop]) *Input[*Shop, string] {
	return From(func(ctx context.Context, r client.Reader, owner *Shop) (string, error) {
		var read configMap
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: name}, &read)
		return read.Data["content"], err
	}, reads...)
}

// copied returns a child that contains the value of an input.
func copied(input *Input[*Shop, string], options ...childOption) AnyChild[*Shop] {
	return with(BuildFrom(input, func(owner *Shop, value string) (*configMap, error) { return constant("copied", value)(owner), nil }), options...)
}

func (env *serverEnv) write(t *testing.T, name, content string) {
	t.Helper()
	obj := &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !env.Exists(t, obj) {
		obj.Data = map[string]string{"content": content}
		require.NoError(t, env.Other.Create(t.Context(), obj))
		return
	}
	obj.Data = map[string]string{"content": content}
	require.NoError(t, env.Other.Update(t.Context(), obj))
}

func (env *serverEnv) content(t *testing.T, name string) string {
	t.Helper()
	obj := &configMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.True(t, env.Exists(t, obj), name)
	return obj.Data["content"]
}

func TestBuildFrom(t *testing.T) {
	env := newEnvInMemory(t)
	env.write(t, "source", "one")
	calls := 0
	input := From(func(ctx context.Context, r client.Reader, owner *Shop) (string, error) {
		calls++
		var read configMap
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "source"}, &read)
		return read.Data["content"], err
	}, Reads(&configMap{}, names("source")))
	s := Ensure(copied(input), BuildEachFrom(input, func(owner *Shop, value string) ([]*configMap, error) {
		return []*configMap{constant("each", value)(owner)}, nil
	}))
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.Equal(t, "one", env.content(t, "copied"))
	require.Equal(t, "one", env.content(t, "each"))
	require.Equal(t, 1, calls, "it is read once for all children")

	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.Equal(t, 1, calls, "nothing of what was read has changed: metadata says so")
	env.write(t, "source", "two")
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.Equal(t, "two", env.content(t, "copied"))
	require.Equal(t, 2, calls)
	env.Owner.Annotations = map[string]string{"changed": "yes"}
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.Equal(t, 3, calls, "the input is a function of the owner too")
}

func TestInputReader(t *testing.T) {
	tests := map[string]struct {
		reason, wantErr string
		input           *Input[*Shop, string]
	}{
		"UndeclaredKind": {
			reason:  "A change of the object would trigger nothing.",
			input:   content("source"),
			wantErr: "input of child ConfigMap: the input reads a ConfigMap, which it does not declare: add ownedresources.Reads of that kind to it, so that a change triggers a reconcile",
		},
		"UnnamedObject": {
			reason:  "Nor would that of an object that the function of Reads does not name.",
			input:   content("source", Reads(&configMap{}, names("another"))),
			wantErr: "/source, which the function of its Reads does not name: return that name there, so that a change triggers a reconcile",
		},
		"List": {
			reason: "An input learns of changes of named objects only.",
			input: From(func(ctx context.Context, r client.Reader, _ *Shop) (string, error) {
				return "", r.List(ctx, &corev1.ConfigMapList{})
			}, Reads(&configMap{}, names("source"))),
			wantErr: "list of *v1.ConfigMapList by an input: an input reads objects by the names that it declares; list in a step of your own",
		},
		"Fails": {
			reason: "An error of the function names the child.",
			input: From(func(context.Context, client.Reader, *Shop) (string, error) {
				return "", errors.New("no such option")
			}),
			wantErr: "input of child ConfigMap: no such option",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			env.write(t, "source", "one")
			before := Ensure(Build(constant("copied", "before")), Build(constant("beside", "before")))
			require.NoError(t, before.Reconcile(t.Context(), env.Client, env.Owner))
			s := Ensure(copied(test.input), Build(constant("beside", "after")))
			require.ErrorContains(t, s.Reconcile(t.Context(), env.Client, env.Owner), test.wantErr, test.reason)
			require.Equal(t, "before", env.content(t, "copied"), "the child stays as it is, and is not pruned")
			require.Equal(t, "after", env.content(t, "beside"), "nothing else is held up")
		})
	}
}

// An object that an input reads may be missing. Until it exists, the child stays as it is.
func TestInputMissing(t *testing.T) {
	env := newEnvInMemory(t)
	s := Ensure(copied(content("source", Reads(&configMap{}, names("source")))), Build(constant("beside", "")))
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound", `child ConfigMap: configmaps "source" not found`)
	require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "copied"}}))
	require.True(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "beside"}}))

	env.write(t, "source", "one")
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.NoError(t, env.Other.Delete(t.Context(), &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "source"}}))
	for _, process := range []*ChildSet[*Shop]{s, Ensure(copied(content("source", Reads(&configMap{}, names("source")))))} {
		requireWaits(t, process.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound")
		require.Equal(t, "one", env.content(t, "copied"), "it is neither changed nor pruned")
	}
}

func TestKeepWhileMissing(t *testing.T) {
	env := newEnvInMemory(t)
	keep := withKeepWhileMissing(func(live, desired *configMap) { desired.Data["content"] = live.Data["content"] })
	newSet := func() *ChildSet[*Shop] {
		return Ensure(copied(VersionHash(Reads(&configMap{}, names("source", "second"))), keep))
	}
	s := newSet()
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound", "child ConfigMap: ConfigMap second, ConfigMap source: not found")
	empty := env.content(t, "copied")
	env.write(t, "source", "one")
	env.write(t, "second", "one")
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	both := env.content(t, "copied")
	require.NotEqual(t, empty, both)

	require.NoError(t, env.Other.Delete(t.Context(), &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "second"}}))
	env.write(t, "source", "two")
	for _, process := range []*ChildSet[*Shop]{s, newSet()} {
		requireWaits(t, process.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound", "ConfigMap second: not found")
		require.Equal(t, both, env.content(t, "copied"), "what is there is kept while an object is missing")
	}
	live := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "copied"}}
	require.True(t, env.Exists(t, live))
	live.Labels = map[string]string{"foreign": "yes"}
	delete(live.Data, "content")
	require.NoError(t, env.Other.Update(t.Context(), live))
	env.write(t, "second", "again")
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.NotEqual(t, both, env.content(t, "copied"))
}

func TestVersionHash(t *testing.T) {
	env := newEnvInMemory(t)
	read := func(input *Input[*Shop, string]) string {
		require.NoError(t, Ensure(copied(input)).Reconcile(t.Context(), env.Client, env.Owner))
		return env.content(t, "copied")
	}
	require.Empty(t, read(VersionHash[*Shop]()), "nothing is referenced")
	env.write(t, "source", "one")
	input := VersionHash(Reads(&configMap{}, names("source")))
	one := read(input)
	require.Equal(t, one, read(input))
	env.write(t, "source", "two")
	require.NotEqual(t, one, read(input))
}

// hashKey builds a Secret with a key for [ContentHash].
func hashKey(value string) *Child[*Shop, *corev1.Secret] {
	return Build(func(*Shop) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"key": []byte(value)}}
	})
}

// The hash of ContentHash changes when a content or the key changes, and at no other change. The hash of VersionHash
// changes with every write.
func TestContentHash(t *testing.T) {
	const long = "0123456789abcdef"
	env := newEnvInMemory(t)
	env.write(t, "source", "one")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "source"}, Data: map[string][]byte{"content": []byte("secret")}}
	require.NoError(t, env.Other.Create(t.Context(), secret))
	reads := []Read[*Shop]{Reads(&configMap{}, names("source")), Reads(&corev1.Secret{}, names("source"))}
	versions := Ensure(copied(VersionHash(reads...)))
	setOf := func(key string, reads ...Read[*Shop]) *ChildSet[*Shop] {
		child := hashKey(key)
		return Ensure(copied(ContentHash(child, "key", reads...)), child)
	}
	set := setOf(long, reads...)
	read := func(s *ChildSet[*Shop]) string {
		t.Helper()
		require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
		return env.content(t, "copied")
	}
	one, version := read(set), read(versions)
	require.Regexp(t, "^v1:[0-9a-f]{32}$", one)

	secret.Labels = map[string]string{"a": "label"}
	require.NoError(t, env.Other.Update(t.Context(), secret))
	require.NotEqual(t, version, read(versions), "the label is a write")
	require.Equal(t, one, read(set), "the label is not content")
	require.NoError(t, env.Other.Delete(t.Context(), secret))
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound", "child ConfigMap: Secret source: not found")
	require.Equal(t, one, env.content(t, "copied"))
	secret.ResourceVersion, secret.UID = "", ""
	require.NoError(t, env.Other.Create(t.Context(), secret))
	require.Equal(t, one, read(set), "it has the same content again")
	secret.Data = map[string][]byte{"content": []byte("another")}
	require.NoError(t, env.Other.Update(t.Context(), secret))
	two := read(set)
	require.NotEqual(t, one, two)
	require.NotEqual(t, two, read(setOf("another key 0123", reads...)), "without the key nobody can check a guess")

	require.Empty(t, read(setOf(long)), "nothing is referenced")
	require.ErrorContains(t, setOf("short", reads...).Reconcile(t.Context(), env.Client, env.Owner),
		`ContentHash: key "key" of the Secret of child Secret has less than 16 bytes: give that child Generate("key", 32)`)
	require.ErrorContains(t, setOf(long, Reads(&corev1.Service{}, names("source"))).Reconcile(t.Context(), env.Client, env.Owner),
		"ContentHash of *v1.Service: it hashes *corev1.ConfigMap and *corev1.Secret")
}

// Users' pod templates contain these hashes. If a later version computed other hashes, it would replace all pods.
func TestContentHashIsRecorded(t *testing.T) {
	c := reconciletest.NewClient(t, scheme.Scheme, shopsFile)
	named := metav1.ObjectMeta{Namespace: "default", Name: "source"}
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"b": []byte("2"), "a": []byte("1")}},
		&configMap{ObjectMeta: named, Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"c": {0, 255}}},
	} {
		require.NoError(t, c.Create(t.Context(), obj))
	}
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	require.NoError(t, c.Create(t.Context(), owner))
	child := hashKey("0123456789abcdef")
	set := Ensure(child, copied(ContentHash(child, "key", Reads(&configMap{}, names("source")), Reads(&corev1.Secret{}, names("source")))))
	require.NoError(t, set.Reconcile(t.Context(), c, owner))
	var made configMap
	require.NoError(t, c.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "copied"}, &made))
	require.Equal(t, "v1:25e317f64afe925e72db59e8e5ca9c64", made.Data["content"])
}

// hiding is a client whose cache does not contain the objects of one name.
type hiding struct {
	client.Client
	name string
}

func (h hiding) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if name.Name == h.name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name.Name)
	}
	return h.Client.Get(ctx, name, obj, opts...)
}

// If the cache's selector leaves out an object that an input reads, the error says so after a minute. Within the first
// minute, the cache may only be behind.
func TestInputHiddenByTheCache(t *testing.T) {
	reads := Reads(&corev1.Secret{}, names("hidden"))
	tests := map[string]struct {
		reason string
		input  *Input[*Shop, string]
		built  bool
	}{
		"Metadata": {reason: "It is read in the cache, which does not have it.", input: VersionHash(reads)},
		"Cached":   {reason: "So is the whole object.", input: VersionHash(ReadsCached(&corev1.Secret{}, names("hidden")))},
		"Whole": {
			reason: "It is read past the cache, but no change triggers a reconcile.",
			input: From(func(ctx context.Context, r client.Reader, owner *Shop) (string, error) {
				var read corev1.Secret
				err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "hidden"}, &read)
				return string(read.Data["content"]), err
			}, reads),
			built: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "hidden"}, Data: map[string][]byte{"content": []byte("one")}}
			require.NoError(t, env.Other.Create(t.Context(), secret))
			s := Ensure(copied(test.input))
			var err error
			s.set.Forms, err = references.NewForms(env.Client.Scheme(), s.Watched(), s.set.References())
			require.NoError(t, err)
			s.set.APIReader = env.Other
			clock := clocktesting.NewFakePassiveClock(secret.CreationTimestamp.Time)
			s.set.Applier.Clock = clock

			err = s.Reconcile(t.Context(), hiding{env.Client, "hidden"}, env.Owner)
			if test.built {
				require.NoError(t, err, "the cache may be just behind")
			} else {
				wait, ok := errors.AsType[*WaitingError](err)
				require.True(t, ok, "%v", err)
				reason, after := wait.Waiting()
				require.Equal(t, "ReferenceNotFound", reason)
				require.Equal(t, time.Minute, after, "no event comes if the cache leaves it out")
			}
			clock.SetTime(clock.Now().Add(2 * time.Minute))
			err = s.Reconcile(t.Context(), hiding{env.Client, "hidden"}, env.Owner)
			hidden, ok := errors.AsType[*NotCachedError](err)
			require.True(t, ok, "%s: %v", test.reason, err)
			require.ErrorContains(t, hidden, "Secret "+env.Namespace+"/hidden is not in the cache, although it exists: the cache's selector or namespaces leave it out")
			require.Equal(t, test.built, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "copied"}}))

			require.NoError(t, env.Other.Delete(t.Context(), secret))
			requireWaits(t, s.Reconcile(t.Context(), hiding{env.Client, "hidden"}, env.Owner), "ReferenceNotFound")
		})
	}
}

// away is a reader whose API server answers every list with an error.
type away struct{ client.Reader }

func (away) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewServiceUnavailable("etcd is away")
}

// If the API server does not answer, it is unknown whether the object exists. Then the reconcile fails, instead of waiting for an
// event.
func TestInputThatCannotBeLookedFor(t *testing.T) {
	env := newEnvInMemory(t)
	s := Ensure(copied(VersionHash(ReadsCached(&corev1.Secret{}, names("hidden")))))
	var err error
	s.set.Forms, err = references.NewForms(env.Client.Scheme(), s.Watched(), s.set.References())
	require.NoError(t, err)
	s.set.APIReader = away{env.Other}
	err = s.Reconcile(t.Context(), hiding{env.Client, "hidden"}, env.Owner)
	require.ErrorContains(t, err, "look for Secret "+env.Namespace+"/hidden, which the cache does not show, on the API server: etcd is away")
	_, waits := errors.AsType[*WaitingError](err)
	require.False(t, waits)
}

func TestLive(t *testing.T) {
	env := newEnvInMemory(t)
	service := Build(func(*Shop) *corev1.Service { return env.Service() })
	fromService := BuildFrom(service.Live(), func(owner *Shop, live *corev1.Service) (*configMap, error) {
		return constant("address", live.Spec.ClusterIP)(owner), nil
	})
	s := Ensure(fromService, service)
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	var live corev1.Service
	env.Live(t, &live)
	require.NotEmpty(t, live.Spec.ClusterIP)
	require.Equal(t, live.Spec.ClusterIP, env.content(t, "address"), "what the API server has set is read in the same reconcile")
}

// A child that waits for another one has no live object yet, so a child built from that object waits too.
func TestLiveOfAChildThatWaits(t *testing.T) {
	env := newEnvInMemory(t)
	database := Build(func(*Shop) *corev1.Service { return env.Service() }).ReadyWhen("Never")
	waiting := Build(constant("waiting", "")).After(database)
	from := BuildFrom(waiting.Live(), func(owner *Shop, live *configMap) (*configMap, error) {
		return constant("from", live.Name)(owner), nil
	})
	each := BuildEachFrom(waiting.LiveEach(), func(owner *Shop, live []*configMap) ([]*configMap, error) {
		return nil, errors.New("is not called")
	})
	err := Ensure(database, waiting, from, each).Reconcile(t.Context(), env.Client, env.Owner)
	requireWaits(t, err, "ConditionNotTrue", "child ConfigMap: it waits for ConfigMap "+env.Namespace+"/waiting")
	require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "from"}}))
}

func TestLiveOfNothing(t *testing.T) {
	env := newEnvInMemory(t)
	none := Build(func(*Shop) *corev1.Service { return nil })
	s := Ensure(none, BuildFrom(none.Live(), func(owner *Shop, live *corev1.Service) (*configMap, error) {
		require.Nil(t, live)
		return constant("from", "nothing")(owner), nil
	}))
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
	require.Equal(t, "nothing", env.content(t, "from"))
}

// A child is built from the live object of another child, which waits and must not be changed yet. The child itself
// exists, and is repaired in any case.
func TestLiveOfAChildThatMayNotBeChanged(t *testing.T) {
	env := newEnvInMemory(t)
	release := func(content string) *ChildSet[*Shop] {
		database := Build(func(*Shop) *appsv1.Deployment { return env.Deployment() })
		middle := Build(constant("middle", content)).After(database)
		return Ensure(database, middle, BuildFrom(middle.Live(), func(_ *Shop, live *configMap) (*configMap, error) {
			return constant("last", live.Data["content"])(nil), nil
		}))
	}
	last := &configMap{ObjectMeta: metav1.ObjectMeta{Name: "last"}}
	requireWaits(t, release("first").Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas", "it waits for ConfigMap "+env.Namespace+"/middle")
	require.False(t, env.Exists(t, last), "what it is built from does not exist")
	env.setReady(t, true)
	require.NoError(t, release("first").Reconcile(t.Context(), env.Client, env.Owner))

	env.setReady(t, false)
	require.True(t, env.Exists(t, last))
	last.Data["content"] = "by hand"
	require.NoError(t, env.Other.Update(t.Context(), last))
	requireWaits(t, release("second").Reconcile(t.Context(), env.Client, env.Owner), "LessAvailable", "middle is not changed until Deployment")
	require.True(t, env.Exists(t, last))
	require.Equal(t, "first", last.Data["content"])
}
