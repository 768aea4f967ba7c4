package ownedresources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bothSet is a set with a child from two inputs: what an object has, and what the API server has set in another child.
func bothSet(env *testEnv, options ...ChildOption) *ChildSet[*configMap] {
	service := Build(func(*configMap) *corev1.Service { return env.service() })
	both := Both(content("source", Reads(&configMap{}, names("source"))), Live[*corev1.Service](service))
	return Ensure(service, BuildFrom(both, func(owner *configMap, in Pair[string, *corev1.Service]) (*configMap, error) {
		return constant("copied", in.First+" "+in.Second.Spec.ClusterIP)(owner), nil
	}, options...))
}

func TestBoth(t *testing.T) {
	env := newTestEnv(t)
	s := bothSet(env)
	requireWaits(t, s.Reconcile(t.Context(), env.client, env.owner), "ReferenceNotFound", `child ConfigMap: configmaps "source" not found`)
	require.False(t, env.exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "copied"}}))

	for _, text := range []string{"one", "two"} {
		env.write(t, "source", text)
		require.NoError(t, s.Reconcile(t.Context(), env.client, env.owner))
		var service corev1.Service
		env.live(t, &service)
		require.Equal(t, text+" "+service.Spec.ClusterIP, env.content(t, "copied"))
	}
	require.Len(t, s.References(), 1, "what the inputs read is watched")

	require.NoError(t, env.other.Delete(t.Context(), &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "source"}}))
	before := env.content(t, "copied")
	keep := KeepWhileMissing(func(live, desired *configMap) { desired.Data["content"] = live.Data["content"] })
	for name, process := range map[string]*ChildSet[*configMap]{"stays as it is": s, "is kept": bothSet(env, keep)} {
		requireWaits(t, process.Reconcile(t.Context(), env.client, env.owner), "ReferenceNotFound", `child ConfigMap: configmaps "source" not found`)
		require.Equal(t, before, env.content(t, "copied"), name)
	}
}

func TestBothFailing(t *testing.T) {
	env := newTestEnv(t)
	failed := From(func(context.Context, client.Reader, *configMap) (string, error) {
		return "", errors.New("it is on fire")
	})
	missing := content("source", Reads(&configMap{}, names("source")))
	for name, input := range map[string]*Input[*configMap, Pair[string, string]]{"first": Both(failed, missing), "second": Both(missing, failed)} {
		t.Run(name, func(t *testing.T) {
			s := Ensure(BuildFrom(input, func(*configMap, Pair[string, string]) (*configMap, error) { panic("it is not built") },
				KeepWhileMissing(func(_, _ *configMap) {})))
			require.EqualError(t, s.Reconcile(t.Context(), env.client, env.owner), "input of child ConfigMap: it is on fire")
		})
	}
}

func TestBothMistakes(t *testing.T) {
	good := From(func(context.Context, client.Reader, *configMap) (string, error) { return "", nil })
	bad := From(func(context.Context, client.Reader, *configMap) (func(), error) { return nil, nil })
	foreign := Live[*configMap](Build(constant("foreign", "")))
	for want, child := range map[string]*Child[*configMap]{
		"one of the two inputs of Both is nil": pairChild(Both[*configMap, string, string](good, nil)),
		"cannot be compared":                   pairChild(Both(good, bad)),
		"is not in this set":                   pairChild(Both(good, foreign)),
	} {
		err := Ensure(child).mistake
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), want))
	}
}

func pairChild[A, B any](input *Input[*configMap, Pair[A, B]]) *Child[*configMap] {
	return BuildFrom(input, func(*configMap, Pair[A, B]) (*configMap, error) { return nil, nil })
}
