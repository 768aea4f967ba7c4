package workload_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources/workload"
)

func ExampleRestart() {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	ctx, c := context.Background(), fake.NewFakeClient(web)
	due := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for range 2 { // the second time, nothing is sent, as after a crash
		if err := c.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
			fmt.Println(err)
		}
		fmt.Println(workload.Restart(ctx, c, web, due, "nightly.example.com"))
	}
	fmt.Println(web.Spec.Template.Annotations)
	// Output:
	// true <nil>
	// false <nil>
	// map[kubectl.kubernetes.io/restartedAt:2026-03-01T02:00:00Z]
}

func ExampleRestartedAt() {
	web := &appsv1.Deployment{}
	web.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: "2026-03-01T02:00:00Z"}
	fmt.Println(workload.RestartedAt(web))
	// Output:
	// 2026-03-01 02:00:00 +0000 UTC true
}

func ExampleCheckRestart() {
	web := &appsv1.Deployment{}
	web.Spec.Paused = true
	due := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	blocker, err := workload.CheckRestart(web, due, scheme.Scheme)
	fmt.Println(blocker.Reason == workload.BlockedPaused, blocker.Message, err)
	// Output:
	// true it is paused <nil>
}

func ExampleCheckStart() {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-5d8c-x7f2q"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "web", Image: "nginx:typo",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}
	blocker := workload.CheckStart(&appsv1.Deployment{}, []corev1.Pod{pod})
	fmt.Println(blocker.Reason)
	fmt.Println(blocker.Message)
	// Output:
	// ImagePullBackOff
	// container web with image nginx:typo waits: ImagePullBackOff
}

func ExampleObserveRollout() {
	web := &appsv1.Deployment{}
	rollout, err := workload.ObserveRollout(web, scheme.Scheme) // no controller has observed it yet
	fmt.Println(rollout.State, rollout.Message, err)
	// Output:
	// InProgress Replicas: 0/1 <nil>
}

func ExampleObserveRestart() {
	due := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	web := &appsv1.Deployment{} // the cache does not contain the restart yet
	for _, age := range []time.Duration{time.Second, time.Hour} {
		rollout, err := workload.ObserveRestart(web, due, age, scheme.Scheme)
		fmt.Println(rollout.State, rollout.Reason, err)
	}
	// Output:
	// InProgress RestartNotSeen <nil>
	// Unknown RestartUndone <nil>
}
