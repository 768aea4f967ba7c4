package ownedresources

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// sixNames are the children of TestRefusedCreations.
var sixNames = []string{"one", "two", "three", "four", "five", "six"}

// busyClient is a client whose API server answers the creation of some objects with 429, Too Many Requests.
type busyClient struct {
	client.Client
	busy map[string]bool
}

func (c *busyClient) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	if c.busy[obj.GetName()] {
		return apierrors.NewTooManyRequests("the server is busy", 1)
	}
	return c.Client.Create(ctx, obj, options...)
}

// TestRefusedCreations sends six creations at the same time, as one set does, and one after another, as six sets do. The API server
// refuses some. Each refusal names its object, and all other objects are created. The next reconcile creates the missing objects and
// sends nothing else.
func TestRefusedCreations(t *testing.T) {
	cases := map[string]struct {
		reason  string
		refuse  func(t *testing.T, env *serverEnv) (c client.Client, allow func())
		refused int
		says    string
	}{
		"TooManyRequests": {"The API server limits each client.", refuseBusy, 2, "the server is busy"},
		"Quota":           {"It admits half of them, whichever come first.", refuseByQuota, 3, "exceeded quota: small"},
		"Admission":       {"A policy or a webhook refuses one.", refuseByPolicy, 1, "nobody may be called two"},
	}
	for name, test := range cases {
		for _, how := range []string{"AtOnce", "OneByOne"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				env := newServerEnv(t)
				c, allow := test.refuse(t, env)
				sets := setsOf(how, sixNames)
				errs := reconcileAll(t, sets, c, env.Owner)
				missing := 0
				for _, name := range sixNames {
					if env.Exists(t, namedConfigMap("", name)) {
						require.NotContains(t, strings.Join(errs, "\n"), "create ConfigMap "+env.Namespace+"/"+name+":", test.reason)
						continue
					}
					missing++
					require.Equal(t, 1, strings.Count(strings.Join(errs, "\n"), "create ConfigMap "+env.Namespace+"/"+name+":"), errs)
				}
				require.Equal(t, test.refused, missing, test.reason)
				require.Equal(t, test.refused, strings.Count(strings.Join(errs, "\n"), test.says), errs)

				allow()
				env.Requests.Sent()
				require.Empty(t, reconcileAll(t, sets, c, env.Owner))
				created := 0
				for _, request := range env.Requests.Sent() {
					if verb, _, _ := strings.Cut(request, " "); verb != "GET" {
						require.Equal(t, "POST configmaps", request)
						created++
					}
				}
				require.Equal(t, test.refused, created, "what exists is not sent again")
			})
		}
	}
}

// setsOf returns one set of all ConfigMaps, or one set for each ConfigMap.
func setsOf(how string, names []string) (sets []*ChildSet[*Shop]) {
	var children []AnyChild[*Shop]
	for _, name := range names {
		children = append(children, Build(constant(name, "")))
	}
	if how == "AtOnce" {
		return []*ChildSet[*Shop]{Ensure(children...)}
	}
	for i, child := range children {
		set := Ensure(child)
		set.SetName(fmt.Sprint("step-", i))
		sets = append(sets, set)
	}
	return sets
}

// reconcileAll reconciles all sets and returns the lines of all errors.
func reconcileAll(t *testing.T, sets []*ChildSet[*Shop], c client.Client, owner *Shop) (lines []string) {
	t.Helper()
	for _, set := range sets {
		if err := set.Reconcile(t.Context(), c, owner); err != nil {
			lines = append(lines, strings.Split(err.Error(), "\n")...)
		}
	}
	return lines
}

func refuseBusy(_ *testing.T, env *serverEnv) (client.Client, func()) {
	c := &busyClient{Client: env.Client, busy: map[string]bool{"two": true, "five": true}}
	return c, func() { c.busy = nil }
}

// refuseByQuota creates a quota, and sets its status as the quota controller would, which does not run here.
func refuseByQuota(t *testing.T, env *serverEnv) (client.Client, func()) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "small"}}
	env.Create(t, quota)
	hard := func(most string) {
		t.Helper()
		limit := corev1.ResourceList{"count/configmaps": resource.MustParse(most)}
		require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(quota), quota)) // admission compares with the quota's status
		quota.Spec.Hard = limit
		require.NoError(t, env.Other.Update(t.Context(), quota))
		if quota.Status.Used == nil {
			quota.Status.Used = corev1.ResourceList{"count/configmaps": resource.MustParse("0")}
		}
		quota.Status.Hard = limit
		require.NoError(t, env.Other.Status().Update(t.Context(), quota))
	}
	hard("0")
	env.waitForAdmission(t, "probe", true)
	hard("3")
	env.waitForAdmission(t, "probe", false)
	return env.Client, func() {
		hard("6")
		env.waitForAdmission(t, "probe", false)
	}
}

// refuseByPolicy creates an admission policy. It refuses one name in the namespaces that have a label.
func refuseByPolicy(t *testing.T, env *serverEnv) (client.Client, func()) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"refuses": env.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.metadata.name != 'two'", Message: "nobody may be called two"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: env.Namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	env.Create(t, policy)
	env.Create(t, binding)
	t.Cleanup(func() {
		require.NoError(t, env.Other.Delete(context.Background(), binding))
		require.NoError(t, env.Other.Delete(context.Background(), policy))
	})
	label := func(value string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"refuses":%q}}}`, value))
		require.NoError(t, env.Other.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}}, patch))
		env.waitForAdmission(t, "two", value != "")
	}
	label(env.Namespace)
	return env.Client, func() { label("") }
}

// waitForAdmission waits until the API server refuses the creation of a ConfigMap of this name, or accepts it if refuses is false.
// Admission sees a new policy or quota a moment later.
func (env *serverEnv) waitForAdmission(t *testing.T, name string, refuses bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := env.Other.Create(t.Context(), namedConfigMap(env.Namespace, name), client.DryRunAll)
		return (err != nil) == refuses
	}, controlplane.Patience, 20*time.Millisecond)
}
