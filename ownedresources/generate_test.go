package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/set"
)

func TestOptionMistakes(t *testing.T) {
	secret := func(options ...childOption) AnyChild[*Shop] {
		return with(Build(func(*Shop) *corev1.Secret { return nil }), options...)
	}
	noTrigger := func(*Shop) string { return "" }
	cases := map[string]struct {
		reason string
		child  AnyChild[*Shop]
		want   string
	}{
		"Generate":         {reason: "Both ends of the range are valid.", child: secret(withGenerate("a", 1), withGenerate("b", 1024))},
		"GenerateUntyped":  {reason: "A Secret without a Go type is a Secret.", child: Build(func(*Shop) *unstructured.Unstructured { return nil }).Kind(corev1.SchemeGroupVersion.WithKind("Secret")).Generate("a", 1)},
		"RunOnce":          {reason: "A Job.", child: Build(func(*Shop) *batchv1.Job { return nil }).RunOnce()},
		"ExpandVolumes":    {reason: "A StatefulSet.", child: Build(func(*Shop) *appsv1.StatefulSet { return nil }).ExpandVolumes()},
		"GenerateNoSecret": {reason: "A password must not get into a ConfigMap.", child: with(Build(constant("a", "")), withGenerate("a", 1)), want: "child 1, a ConfigMap: it has Generate, which is for a Secret: take it away, or put the value into a Secret of its own"},
		"LengthZero":       {reason: "An empty value protects nothing.", child: secret(withGenerate("a", 0)), want: `child 1, a Secret: Generate("a") with length 0: use a length between 1 and 1024`},
		"LengthNegative":   {reason: "Nor is there one of a negative length.", child: secret(withGenerate("a", -1)), want: `child 1, a Secret: Generate("a") with length -1: use a length between 1 and 1024`},
		"LengthTooLarge":   {reason: "A typing error must not fill etcd.", child: secret(withGenerate("a", 1025)), want: `child 1, a Secret: Generate("a") with length 1025: use a length between 1 and 1024`},
		"KeyEmpty":         {reason: "The API server would refuse it.", child: secret(withGenerate("", 8)), want: `child 1, a Secret: Generate(""): it is not a key of a Secret: a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`},
		"KeyTwice":         {reason: "Which length counts?", child: secret(withGenerate("a", 8), withGenerate("a", 9)), want: `child 1, a Secret: Generate("a") is given twice: a key has one value`},
		"GenerateRecreate": {reason: "A recreated Secret loses what it holds.", child: secret(withGenerate("a", 8), withRecreate()), want: "child 1, a Secret: it has Generate and Recreate: a recreated Secret would lose its values; take Recreate away"},
		"RotateOnTwice":    {reason: "Which trigger counts?", child: Build(func(*Shop) *corev1.Secret { return nil }).Generate("a", 8, noTrigger, noTrigger), want: `child 1, a Secret: Generate("a") has 2 functions that return a trigger: give it one`},
		"NoKind":           {reason: "Nobody knows what it is.", child: Build(func(*Shop) *unstructured.Unstructured { return nil }), want: "child 1, a : it has no kind: give it one with the method Kind"},
		"KindOfGoType":     {reason: "The Go type has a kind.", child: Build(constant("a", "")).Kind(corev1.SchemeGroupVersion.WithKind("Secret")), want: "child 1, a ConfigMap: it has a Kind, and the type *v1.ConfigMap: a Kind is for a function that returns *unstructured.Unstructured; take it away"},
		"NoInput":          {reason: "Nothing can be missing.", child: Build(constant("a", "")).KeepWhileMissing(func(_, _ *configMap) {}), want: "child 1, a ConfigMap: it has KeepWhileMissing, and no input that could be missing: take it away, or build it with BuildFrom"},
		"RunOnceNoJob":     {reason: "Only a Job ends.", child: secret(withRunOnce()), want: "child 1, a Secret: RunOnce is for a Job: take it away, or put what has to run once into a Job"},
		"RunOnceRecreate":  {reason: "Two rules for one deletion.", child: Build(func(*Shop) *batchv1.Job { return nil }).RunOnce().Recreate(), want: "child 1, a Job: it has RunOnce and Recreate: RunOnce replaces the Job itself; take Recreate away"},
		"RunOnceReadyWhen": {reason: "Two rules for readiness.", child: Build(func(*Shop) *batchv1.Job { return nil }).RunOnce().ReadyWhen("Complete"), want: "child 1, a Job: it has RunOnce and ReadyWhen: it is ready when the Job is complete; take ReadyWhen away"},
		"ExpandDeployment": {reason: "It has no claim templates.", child: Build(func(*Shop) *appsv1.Deployment { return nil }).ExpandVolumes(), want: "child 1, a Deployment: ExpandVolumes is for a StatefulSet: take it away; a claim that is a child itself grows without it"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := set.NewOrder(untyped([]AnyChild[*Shop]{test.child}))
			if test.want == "" {
				require.NoError(t, err, test.reason)
				return
			}
			require.EqualError(t, err, test.want, test.reason)
		})
	}
}

// credentials builds a Secret with one key that is not generated.
func credentials(*Shop) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"username": "web"}}
}

// Generate works for an unstructured Secret, and for a Secret that is desired as an apply
// configuration.
func TestGenerateWithoutAGoType(t *testing.T) {
	secretKind := corev1.SchemeGroupVersion.WithKind("Secret")
	children := map[string]AnyChild[*Shop]{
		"Unstructured": Build(func(*Shop) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
		}).Kind(secretKind).Generate("password", 8),
		"ApplyConfiguration": BuildApply(&corev1.Secret{}, func(owner *Shop) (*corev1ac.SecretApplyConfiguration, error) {
			return corev1ac.Secret("web", owner.Namespace), nil
		}).Generate("password", 8),
	}
	for name, child := range children {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			set := Ensure(child)
			require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner))
			var live corev1.Secret
			env.Live(t, &live)
			password := live.Data["password"]
			require.Len(t, password, 8)
			env.Requests.Sent()
			require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner))
			require.Equal(t, []string{"GET secrets"}, env.Requests.Sent())
			ownedtest.ByHand(t, env.Server, &live, func(s *corev1.Secret) { s.Data = nil })
			require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner))
			env.Live(t, &live)
			require.Len(t, live.Data["password"], 8)
			require.NotEqual(t, password, live.Data["password"])
		})
	}
}

func TestRotateOn(t *testing.T) {
	env := newEnvInMemory(t)
	mark := func(owner *Shop) string { return owner.Spec.Rotate }
	child := func(rotateOn ...func(*Shop) string) *ChildSet[*Shop] {
		return Ensure(Build(credentials).Generate("password", 24, rotateOn...).Generate("cookie", 24))
	}
	var live corev1.Secret
	reconcile := func(set *ChildSet[*Shop], value string) (password, cookie string) {
		t.Helper()
		env.Owner.Spec.Rotate = value
		require.NoError(t, env.Other.Update(t.Context(), env.Owner))
		require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner))
		env.Live(t, &live)
		return string(live.Data["password"]), string(live.Data["cookie"])
	}
	first, cookie := reconcile(child(), "old")
	set := child(mark)
	for _, step := range []struct {
		mark, why string
		rotates   bool
	}{
		{"old", "a value from before the option is kept", false},
		{"new", "the trigger has changed", true},
		{"new", "once", false},
		{"", "to remove the trigger asks for nothing", false},
		{"new", "a trigger that comes back is a new one", true},
	} {
		second, same := reconcile(set, step.mark)
		require.Equal(t, step.rotates, first != second, step.why)
		require.Equal(t, cookie, same, "another key stays: %s", step.why)
		first = second
		env.Requests.Sent()
		require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner))
		require.Equal(t, []string{"GET secrets"}, env.Requests.Sent(), step.why)
	}

	// A process that has just started sees an earlier version of the owner.
	old := env.Owner.DeepCopy()
	last, _ := reconcile(set, "latest")
	restarted := child(mark)
	require.True(t, apierrors.IsConflict(restarted.Reconcile(t.Context(), env.Client, old)))
	env.Live(t, &live)
	require.Equal(t, last, string(live.Data["password"]), "it does not rotate back")
}
