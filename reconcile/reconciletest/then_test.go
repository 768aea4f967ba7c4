package reconciletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestHas(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	pod := func(name string, containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: named(name), Spec: corev1.PodSpec{Containers: containers}}
	}
	limited := func(image, memory string) corev1.Container {
		return corev1.Container{Name: "shop", Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}}
	}
	untyped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"namespace": "default", "name": "web"}, "spec": map[string]any{"motto": "less"},
	}}
	lines := map[string]struct {
		reason string
		want   client.Object
		err    string // "": the object has all
	}{
		"Same":      {"further fields, such as defaults, do not count", pod("web", limited("shop:1", "1Gi")), ""},
		"Quantity":  {"two forms of a quantity are equal", pod("web", limited("shop:1", "1024Mi")), ""},
		"OnlyAName": {"empty fields do not count", pod("web"), ""},
		"Other":     {"the line has both values", pod("web", limited("shop:2", "1Gi")), "Pod default/web is not as it must be:\n  spec.containers[shop].image is \"shop:1\", and must be \"shop:2\""},
		"Zero":      {"a zero that is always encoded is empty", &appsv1.StatefulSet{ObjectMeta: named("web"), Spec: appsv1.StatefulSetSpec{ServiceName: "web"}}, ""},
		"NoZero":    {"a pointer to a zero is not empty", &appsv1.StatefulSet{ObjectMeta: named("web"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0))}}, "spec.replicas is 2, and must be 0"},
		"NoItem":    {"an item that is wanted must be there", pod("web", corev1.Container{Name: "sidecar"}), "spec.containers[sidecar] is missing, and must be"},
		"Absent":    {"the object must exist", pod("zoo"), "Pod default/zoo does not exist"},
		"Untyped":   {"an untyped object has its kind itself", untyped, "Shop default/web is not as it must be:\n  spec.motto is \"more\", and must be \"less\""},
	}
	s := of(idle)
	set := &appsv1.StatefulSet{ObjectMeta: named("web"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: set.Spec.Selector.MatchLabels}, Spec: corev1.PodSpec{Containers: []corev1.Container{limited("shop:1", "1Gi")}}}
	s.Objects = []client.Object{set, pod("web", limited("shop:1", "1Gi"), corev1.Container{Name: "proxy", Image: "proxy:1"}), shop(func(s *Shop) { s.Spec.Motto = "more" })}
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		for name, line := range lines {
			switch err := reconciletest.Has(line.want)(env); line.err {
			case "":
				assert.NoError(t, err, "%s: %s", name, line.reason)
			default:
				assert.ErrorContains(t, err, line.err, "%s: %s", name, line.reason)
			}
		}
	})
}
