package reconcile_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile"
)

// The step lists pods, so it watches them: an event of a pod triggers the pass of the object that the pod's label names.
func ExampleWatching() {
	podToBudget := func(_ context.Context, _ client.Reader, pod *corev1.Pod) []ctrl.Request {
		name, ok := pod.Labels["app"]
		if !ok {
			return nil
		}
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: pod.Namespace, Name: name}}}
	}
	countPods := func(ctx context.Context, c client.Client, b *budget) error {
		pods, err := reconcile.List[*corev1.Pod](ctx, c, &corev1.PodList{}, client.InNamespace(b.Namespace), client.MatchingLabels{"app": b.Name})
		if err != nil {
			return err
		}
		for pod := range pods {
			fmt.Println("found", pod.Name)
		}
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}}}
	c, request := store(nil, pod)
	_, err := reconcile.New(c, reconcile.Named("pods", reconcile.Func(countPods), reconcile.Watching(&corev1.Pod{}, podToBudget))).
		Reconcile(context.Background(), request)
	fmt.Println(err)
	// Output:
	// found web-0
	// <nil>
}

// List returns the objects of the cache without copying them.
func ExampleList() {
	c := fake.NewFakeClient(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	all, err := reconcile.List[*corev1.ConfigMap](context.Background(), c, &corev1.ConfigMapList{}, client.InNamespace("shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for settings := range all {
		fmt.Println(settings.Name)
	}
	// Output: web
}

// The step observes a Deployment that somebody else owns. ReadsCached keeps the whole Deployment in the cache.
func ExampleNamedStep_ReadsCached() {
	observe := func(ctx context.Context, c client.Client, b *budget) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: "web"}, d); err != nil {
			return err
		}
		fmt.Println("replicas:", *d.Spec.Replicas)
		return nil
	}
	c, request := store(nil, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
	})
	step := reconcile.Named("observe", reconcile.Func(observe)).
		ReadsCached(&appsv1.Deployment{}, func(*budget) []types.NamespacedName {
			return []types.NamespacedName{{Name: "web"}}
		})
	_, err := reconcile.New(c, step).Reconcile(context.Background(), request)
	fmt.Println(err)
	// Output:
	// replicas: 3
	// <nil>
}
