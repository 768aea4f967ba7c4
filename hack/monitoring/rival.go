package main

import (
	"context"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startRival starts another writer, which changes the selector of a Service back after each write of the operator. It returns a function
// that stops the writer.
func (s *scenario) startRival(ctx context.Context, namespace, name string) (stop func() error, err error) {
	nothing := func() error { return nil }
	c, err := client.NewWithWatch(s.cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nothing, err
	}
	ctx, cancel := context.WithCancel(ctx)
	events, err := c.Watch(ctx, &corev1.ServiceList{}, client.InNamespace(namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		cancel()
		return nothing, err
	}
	var done sync.WaitGroup
	var failed error
	done.Go(func() {
		for event := range events.ResultChan() {
			service, ok := event.Object.(*corev1.Service)
			if !ok || event.Type == watch.Deleted || service.Spec.Selector["app"] == "rival" {
				continue
			}
			change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":{"app":"rival"}}}`))
			if failed = c.Patch(ctx, service, change, client.FieldOwner("rival")); failed != nil {
				return
			}
		}
	})
	return func() error {
		events.Stop()
		done.Wait()
		cancel()
		return failed
	}, nil
}

// replaceImages makes the API server replace the images of Deployments in the namespace mirrored, by an admission policy.
func (s *scenario) replaceImages(ctx context.Context) error {
	const name = "mirror"
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: mirrored}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/memcached:1.6-alpine"}]`,
				},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := s.user.Create(ctx, obj); err != nil {
			return err
		}
	}
	return until(ctx, func(ctx context.Context) (bool, error) { // wait until the API server has seen the policy
		labels := map[string]string{"app": "probe"}
		probe := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: mirrored, Name: "probe"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
				},
			},
		}
		err := s.user.Create(ctx, probe, client.DryRunAll)
		return err == nil && probe.Spec.Template.Spec.Containers[0].Image != "probe", err
	})
}
