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

// combined are the values of two inputs.
type combined struct {
	text    string
	service *corev1.Service
}

// combiningSet returns a set with a child that is built from two inputs: from an object that is read, and from the live
// object of another child.
func combiningSet(env *serverEnv, options ...childOption) *ChildSet[*Shop] {
	service := Build(func(*Shop) *corev1.Service { return env.Service() })
	text, live := content("source", Reads(&configMap{}, names("source"))), service.Live()
	both := Combine(func(v *Values[*Shop]) combined { return combined{text.Value(v), live.Value(v)} }, text, live)
	return Ensure(service, with(BuildFrom(both, func(owner *Shop, in combined) (*configMap, error) {
		return constant("copied", in.text+" "+in.service.Spec.ClusterIP)(owner), nil
	}), options...))
}

func TestCombine(t *testing.T) {
	env := newEnvInMemory(t)
	s := combiningSet(env)
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound", `child ConfigMap: configmaps "source" not found`)
	require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "copied"}}))

	for _, text := range []string{"one", "two"} {
		env.write(t, "source", text)
		require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
		var service corev1.Service
		env.Live(t, &service)
		require.Equal(t, text+" "+service.Spec.ClusterIP, env.content(t, "copied"))
	}
	require.Len(t, s.set.References(), 1, "what the inputs read is watched")

	require.NoError(t, env.Other.Delete(t.Context(), &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "source"}}))
	before := env.content(t, "copied")
	keep := withKeepWhileMissing(func(live, desired *configMap) { desired.Data["content"] = live.Data["content"] })
	for name, process := range map[string]*ChildSet[*Shop]{"stays as it is": s, "is kept": combiningSet(env, keep)} {
		requireWaits(t, process.Reconcile(t.Context(), env.Client, env.Owner), "ReferenceNotFound", `child ConfigMap: configmaps "source" not found`)
		require.Equal(t, before, env.content(t, "copied"), name)
	}
}

func TestCombineFailing(t *testing.T) {
	env := newEnvInMemory(t)
	failed := From(func(context.Context, client.Reader, *Shop) (string, error) {
		return "", errors.New("it is on fire")
	})
	missing := content("source", Reads(&configMap{}, names("source")))
	for name, inputs := range map[string][]AnyInput[*Shop]{"first": {failed, missing}, "second": {missing, failed}} {
		t.Run(name, func(t *testing.T) {
			input := Combine(func(*Values[*Shop]) string { panic("a value is not known") }, inputs...)
			s := Ensure(with(BuildFrom(input, func(*Shop, string) (*configMap, error) { panic("it is not built") }), withKeepWhileMissing(func(_, _ *configMap) {})))
			require.EqualError(t, s.Reconcile(t.Context(), env.Client, env.Owner), "input of child ConfigMap: it is on fire")
		})
	}
}

func TestCombineMistakes(t *testing.T) {
	good := From(func(context.Context, client.Reader, *Shop) (string, error) { return "", nil })
	foreign := Build(constant("foreign", "")).Live()
	var none *Input[*Shop, string]
	for want, inputs := range map[string][]AnyInput[*Shop]{
		"input 2 of Combine is nil": {good, none},
		"input 1 of Combine is nil": {nil},
		"is not in this set":        {good, foreign},
	} {
		combined := Combine(func(*Values[*Shop]) string { return "" }, inputs...)
		err := Ensure(BuildFrom(combined, func(*Shop, string) (*configMap, error) { return nil, nil })).set.Mistake
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), want))
	}
	require.PanicsWithValue(t, "Combine reads an input that it was not given: add it to the arguments after the function", func() {
		good.Value(&Values[*Shop]{})
	})
}
