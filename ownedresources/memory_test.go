package ownedresources

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// rewriteImages makes the API server replace the image of every Deployment in the namespace, as an admission plug-in does.
func rewriteImages(t *testing.T, w *serverEnv) {
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
	require.Eventually(t, func() bool { // the API server watches its policies
		probe := w.deployment()
		probe.Name = "probe"
		require.NoError(t, w.other.Create(t.Context(), probe, client.DryRunAll))
		return probe.Spec.Template.Spec.Containers[0].Image != "nginx:1.27"
	}, 20*time.Second, 20*time.Millisecond)
}

func TestToleratedDifferences(t *testing.T) {
	if os.Getenv("OPBLOCKS_KUBERNETES") != "" {
		t.Skip("needs a MutatingAdmissionPolicy, which only Kubernetes 1.36 serves")
	}
	w := newServerEnv(t)
	rewriteImages(t, w)
	rewritten := []string{"Deployment,spec.template.spec.containers[name=web].image=1"}
	w.expect(t, w.deployment(), apply.Created, "POST deployments", "PATCH deployments") // the second records what was rewritten
	w.expect(t, w.deployment(), apply.Unchanged, none...)
	require.Equal(t, rewritten, shown(t, w.applier.Metrics, "opblocks_settled_differences"), "the metric names the field")

	for range 2 {
		w.applier = apply.New() // after a restart the record is in the object
		w.expect(t, w.deployment(), apply.Unchanged, none...)
		require.Equal(t, rewritten, shown(t, w.applier.Metrics, "opblocks_settled_differences"))
	}
	for range 3 { // calls of Apply, which remembers nothing
		_, err := Apply(t.Context(), w.client, w.owner, w.deployment())
		require.NoError(t, err)
		require.NotContains(t, w.sent.Sent(), "PATCH deployments")
	}

	changed := w.deployment()
	changed.Spec.Replicas = new(int32(3))
	w.expect(t, changed, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments") // migrates, and applies
	w.expect(t, w.deployment(), apply.Applied, "PATCH deployments")                                  // the record has not changed
	w.applier = apply.New()
	w.expect(t, w.deployment(), apply.Unchanged, none...)

	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
	w.expect(t, w.deployment(), apply.Applied, "PATCH deployments") // other drift is repaired
	w.expect(t, w.deployment(), apply.Unchanged, none...)
}
