package ownedresources

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newInputEnv returns an operator whose child is built from a Secret. The Secret is read from the API server, and the
// value is remembered.
func newInputEnv[S any](t *testing.T, read func(secret string, owner *Shop) (S, error), build ...func(value S) string) *memoryEnv {
	t.Helper()
	secrets := func(*Shop) []types.NamespacedName { return []types.NamespacedName{{Name: "source"}} }
	input := From(func(ctx context.Context, r client.Reader, owner *Shop) (value S, err error) {
		source := sourceSecret()
		if err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "source"}, source); err != nil {
			return value, err
		}
		return read(string(source.Data["content"]), owner)
	}, Reads(&corev1.Secret{}, secrets))
	set := Ensure(BuildFrom(input, func(owner *Shop, value S) (*configMap, error) {
		content := "constant"
		if len(build) > 0 {
			content = build[0](value)
		}
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}, Data: map[string]string{"content": content}}, nil
	}))
	env := newMemoryEnv(t, set)
	env.writeSource(t, "one")
	return env
}

func sourceSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shopName.Namespace, Name: "source"}}
}

func (env *memoryEnv) writeSource(t *testing.T, content string) {
	t.Helper()
	source := sourceSecret()
	err := env.server.Other.Get(t.Context(), client.ObjectKeyFromObject(source), source)
	source.Data = map[string][]byte{"content": []byte(content)}
	if apierrors.IsNotFound(err) {
		require.NoError(t, env.server.Other.Create(t.Context(), source))
		return
	}
	require.NoError(t, err)
	require.NoError(t, env.server.Other.Update(t.Context(), source))
}

// The value of an input may keep a part of the owner. It is a part of a copy, which is not used for anything else.
func TestInputKeepsThePartOfAnOwner(t *testing.T) {
	type settings struct {
		Spec *ShopSpec
	}
	seen := []string{}
	env := newInputEnv(t, func(_ string, owner *Shop) (settings, error) { return settings{&owner.Spec}, nil }, func(s settings) string {
		seen = append(seen, s.Spec.Content)
		return s.Spec.Content
	})
	owner := env.owner(t)
	owner.Spec.Content = "3"
	require.NoError(t, env.server.Other.Update(t.Context(), owner))
	env.converge(t)
	env.writeSource(t, "two") // the value stays the same, and the Secret gets another version
	env.pass(t)
	require.True(t, env.isSettled(t))
	env.pass(t)
	env.updated(t, env.cachedOwner(), env.cachedOwner()) // a resync: the child is built from the remembered value
	env.pass(t)
	require.Equal(t, []string{"3"}, slices.Compact(seen))
	require.Equal(t, "3", env.child(t, "built").Data["content"])
	require.Empty(t, env.impure)
}

// If the function of an input changes the owner, it changes a copy, and not the object in the cache.
func TestInputChangesTheOwner(t *testing.T) {
	env := newInputEnv(t, func(content string, owner *Shop) (string, error) {
		if owner.Labels == nil {
			owner.Labels = map[string]string{}
		}
		owner.Labels["by"] = "the input"
		return content, nil
	})
	owner := env.owner(t)
	owner.Labels = map[string]string{"of": "the-owner"}
	require.NoError(t, env.server.Other.Update(t.Context(), owner))
	env.converge(t)
	env.writeSource(t, "two")
	env.pass(t)
	require.Equal(t, map[string]string{"of": "the-owner"}, env.cachedOwner().Labels)
}

// always is a type whose values are all equal, by its method Equal.
type always struct{ Content string }

func (always) Equal(always) bool { return true }

// The value of an input may hide a change, by its method Equal or because it is changed in place. Then the set still
// sees the change, or the function is reported as impure, or the change has no effect.
func TestInputsThatLie(t *testing.T) {
	t.Run("Equal", func(t *testing.T) {
		env := newInputEnv(t, func(content string, _ *Shop) (always, error) { return always{content}, nil }, func(v always) string { return v.Content })
		env.converge(t)
		env.writeSource(t, "two")
		env.pass(t)
		require.Equal(t, "two", env.child(t, "built").Data["content"], "the versions decide")
	})
	t.Run("ChangedInPlace", func(t *testing.T) {
		shared := map[string]string{"content": "one"}
		env := newInputEnv(t, func(string, *Shop) (map[string]string, error) { return shared, nil },
			func(v map[string]string) string { return v["content"] })
		env.converge(t)
		shared["content"] = "two"
		env.pass(t)
		require.Len(t, env.impure, 1)
		require.ErrorContains(t, env.impure[0], "ConfigMap default/built: it is built in another way, although neither the owner, nor what an input reads, nor a child has changed")
	})
	t.Run("ChangedByTheBuilder", func(t *testing.T) {
		env := newInputEnv(t, func(content string, _ *Shop) (map[string]string, error) {
			return map[string]string{"content": content}, nil
		},
			func(v map[string]string) string {
				defer func() { v["content"] = "changed" }()
				return v["content"]
			})
		for range 5 {
			env.show(t)
			env.pass(t)
		}
		require.NotEmpty(t, env.impure)
		require.ErrorContains(t, env.impure[0], "it is built in another way, although neither the owner, nor what an input reads, nor a child has changed")
	})
	t.Run("FromAGlobal", func(t *testing.T) {
		global := "one"
		env := newInputEnv(t, func(string, *Shop) (string, error) { return global, nil }, func(v string) string { return v })
		env.converge(t)
		global = "two"
		env.pass(t)
		require.Len(t, env.impure, 1, "the value is remembered for the version of the Secret")
		require.ErrorContains(t, env.impure[0], "it is built in another way")
	})
	t.Run("CachesItsText", func(t *testing.T) {
		type size struct{ Quantity *resource.Quantity }
		env := newInputEnv(t, func(string, *Shop) (size, error) { return size{resource.NewQuantity(1000, resource.DecimalSI)}, nil },
			func(v size) string { return v.Quantity.String() }) // String changes the Quantity: it stores its text there
		env.converge(t)
		require.True(t, env.isSettled(t))
	})
	t.Run("StaleCache", func(t *testing.T) {
		env := newInputEnv(t, func(content string, _ *Shop) (string, error) { return content, nil }, func(v string) string { return v })
		env.converge(t)
		known := env.metadataOf(t, "source")
		env.writeSource(t, "two")
		env.cache.Client = staleMetadata{env.cache.Client, known}
		env.pass(t)
		require.Empty(t, env.impure, "the API server has another version than the cache, so another value says nothing")
	})
}

// staleMetadata is a client whose metadata of one object is old.
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

func (env *memoryEnv) metadataOf(t *testing.T, name string) *metav1.PartialObjectMetadata {
	t.Helper()
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind("v1", "Secret"))
	require.NoError(t, env.server.Other.Get(t.Context(), types.NamespacedName{Namespace: shopName.Namespace, Name: name}, m))
	return m
}
