package overlay_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/ownedresources/overlay"
	"github.com/opblocks/opblocks/ownedresources/overlay/testdata/api"
)

// deployment builds a child whose pods the user may change. The image stays the operator's.
func deployment(site *api.Site) (*appsv1.Deployment, error) {
	d := ownedresources.NewDeployment(site, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
	template, err := site.Spec.PodTemplate.Apply(d.Spec.Template, d.Spec.Selector, overlay.Protect("spec.containers[web].image"))
	d.Spec.Template = template
	return d, err
}

func Example() {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		fmt.Println(err)
	}
	if err := api.AddToScheme(s); err != nil {
		fmt.Println(err)
	}
	ctx, c := context.Background(), fake.NewClientBuilder().WithScheme(s).Build()
	children := ownedresources.Ensure(ownedresources.BuildOrError(deployment)) // it can be a step of package reconcile
	site := &api.Site{
		TypeMeta:   metav1.TypeMeta{APIVersion: "overlay.test.opblocks.dev/v1", Kind: "Site"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "4f1e"},
	}

	site.Spec.PodTemplate.Raw = []byte(`{"spec": {"priorityClassName": "high", "containers": [{"name": "web", "args": ["-q"]}]}}`)
	fmt.Println(children.Reconcile(ctx, c, site))
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKeyFromObject(site), &d); err != nil {
		fmt.Println(err)
	}
	fmt.Println(d.Spec.Template.Spec.PriorityClassName, d.Spec.Template.Spec.Containers[0].Image, d.Spec.Template.Spec.Containers[0].Args)

	site.Spec.PodTemplate.Raw = []byte(`{"spec": {"containers": [{"name": "web", "image": "other"}]}}`)
	fmt.Println(children.Reconcile(ctx, c, site))
	// Output:
	// Deployment shop/web: Replicas: 0/1
	// high nginx:1.27 [-q]
	// spec.podTemplate.spec.containers[web].image: Forbidden: cannot be changed, because the operator needs it: remove from the patch what changes, replaces or deletes it
}

func ExamplePodTemplate_Apply() {
	base := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}}},
		}},
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

	patch := overlay.PodTemplate{Raw: []byte(`{"spec": {"containers": [
		{"name": "web", "env": [{"name": "LEVEL", "value": "debug"}]},
		{"name": "proxy", "image": "envoy:1.31"}
	]}}`)}
	merged, err := patch.Apply(base, selector)
	for _, c := range merged.Spec.Containers {
		fmt.Println(c.Name, c.Image, c.Env)
	}
	fmt.Println(err)

	patch = overlay.PodTemplate{Raw: []byte(`{"metadata": {"labels": {"app": "other"}}}`)}
	_, err = patch.Apply(base, selector)
	fmt.Println(err)
	// Output:
	// web nginx:1.27 [{MODE shop nil} {LEVEL debug nil}]
	// proxy envoy:1.31 []
	// <nil>
	// spec.podTemplate.metadata.labels[app]: Forbidden: must stay "web", by which the workload selects its pods: do not change or remove it
}

// In a webhook, Validate finds what is wrong with the patch itself.
func ExamplePodTemplate_Validate() {
	site := api.Site{Spec: api.SiteSpec{PodTemplate: overlay.PodTemplate{Raw: []byte(`{"spec": {"containers": [{"name": "web", "imagePulPolicy": "Always"}, {"image": "a"}]}}`)}}}
	for _, err := range site.Spec.PodTemplate.Validate(field.NewPath("spec", "podTemplate")) {
		fmt.Println(err)
	}
	// Output:
	// spec.podTemplate.spec.containers[0].imagePulPolicy: Invalid value: unknown field
	// spec.podTemplate.spec.containers[1].name: Required value: the items of this list are merged by it
}

func ExampleProtect() {
	operators := overlay.Protect("spec.serviceAccountName", "spec.containers[web].name", "spec.containers[web].env[PORT]")
	base := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.27"}}}}

	patch := overlay.PodTemplate{Raw: []byte(`{"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}`)}
	merged, err := patch.Apply(base, nil, operators)
	fmt.Println(merged.Spec.Containers[0].Image, err)

	patch = overlay.PodTemplate{Raw: []byte(`{"spec": {"serviceAccountName": "admin", "containers": [{"$patch": "replace"}, {"name": "mine", "image": "a"}]}}`)}
	_, err = patch.Apply(base, nil, operators, overlay.At(field.NewPath("spec", "pods")))
	if invalid, ok := errors.AsType[*overlay.InvalidError](err); ok {
		for _, one := range invalid.Errors {
			fmt.Println(one.Type, one.Field)
		}
	}
	// Output:
	// nginx:1.28 <nil>
	// Forbidden spec.pods.spec.serviceAccountName
	// Forbidden spec.pods.spec.containers[web].name
}
