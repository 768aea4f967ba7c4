package ownedresources

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rewriteImages makes the API server replace the image of every Deployment in the namespace.
func rewriteImages(t *testing.T, w *world) {
	t.Helper()
	name := "rewrite-" + w.namespace
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: selector,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/nginx:1.27"}]`,
				},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, obj := range []client.Object{policy, binding} {
		require.NoError(t, w.other.Create(t.Context(), obj))
		t.Cleanup(func() { require.NoError(t, w.other.Delete(context.Background(), obj)) })
	}
	require.Eventually(t, func() bool { // the API server learns of it by a watch
		probe := w.deployment()
		probe.Name = "probe"
		require.NoError(t, w.other.Create(t.Context(), probe, client.DryRunAll))
		return probe.Spec.Template.Spec.Containers[0].Image != "nginx:1.27"
	}, 20*time.Second, 20*time.Millisecond)
}

func TestAdmissionThatRewritesIsNotFought(t *testing.T) {
	w := newWorld(t)
	rewriteImages(t, w)
	w.expect(t, w.deployment(), Created, "POST deployments")
	w.expect(t, w.deployment(), Unchanged, none...)
	require.Equal(t, []string{"Deployment,spec.template.spec.containers[name=web].image=1"},
		shown(t, w.applier.metrics, "opblocks_settled_differences"), "the metric names the field")

	w.applier = newApplier() // a restart forgets it: one request that changes nothing, besides the takeover
	w.expect(t, w.deployment(), Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	for range 3 {
		w.expect(t, w.deployment(), Unchanged, none...)
	}
	w.applier = newApplier()
	w.expect(t, w.deployment(), Applied, "PATCH deployments")
	w.expect(t, w.deployment(), Unchanged, none...)

	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
	w.expect(t, w.deployment(), Applied, "PATCH deployments") // other drift is repaired nevertheless
	w.expect(t, w.deployment(), Unchanged, none...)
}
