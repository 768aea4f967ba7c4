package predicates_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/opblocks/opblocks/predicates"
)

// Several operators share a kind: each reconciles the objects whose label has its name, in upper or lower case. This
// operator reconciles its objects when they change, and once more when the label gets another value.
func Example() {
	setup := func(mgr ctrl.Manager, target string, r ctrlreconcile.Reconciler) error {
		return ctrl.NewControllerManagedBy(mgr).
			For(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(
				predicates.Label("target").EqualsFold(target),
				predicate.Or(predicates.GenerationChanged(), predicates.Label("target").Changed()))).
			Complete(r)
	}
	fmt.Printf("%T\n", setup)
	// Output: func(manager.Manager, string, reconcile.TypedReconciler[sigs.k8s.io/controller-runtime/pkg/reconcile.Request]) error
}

func labeled(key, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{key: value}}}
}

func annotated(key, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{key: value}}}
}

func update(before, after client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
}

func ExampleLabel() {
	p := predicates.Label("target").Equals("blue")
	fmt.Println("stops matching:", p.Update(update(labeled("target", "blue"), labeled("target", "green"))))
	fmt.Println("does not match:", p.Update(update(labeled("target", "green"), labeled("target", "green"))))
	fmt.Println("other case:", p.Create(event.CreateEvent{Object: labeled("target", "BLUE")}))
	// Output:
	// stops matching: true
	// does not match: false
	// other case: false
}

func ExampleMetadata_EqualsFold() {
	p := predicates.Label("target").EqualsFold("blue")
	fmt.Println(p.Create(event.CreateEvent{Object: labeled("target", "BLUE")}))
	// Output: true
}

func ExampleMetadata_Exists() {
	p := predicates.Label("target").Exists()
	fmt.Println(p.Create(event.CreateEvent{Object: labeled("target", "")}), p.Create(event.CreateEvent{Object: &corev1.Pod{}}))
	// Output: true false
}

func ExampleMetadata_Changed() {
	narrow := predicate.And(predicates.Label("target").Equals("blue"), predicates.GenerationChanged())
	wide := predicate.And(predicates.Label("target").Equals("blue"),
		predicate.Or(predicates.GenerationChanged(), predicates.Label("target").Changed()))

	before, after := labeled("target", "blue"), labeled("target", "green")
	before.Generation, after.Generation = 1, 1 // labels do not change the generation
	fmt.Println(narrow.Update(update(before, after)), wide.Update(update(before, after)))
	// Output: false true
}

func ExampleAnnotation() {
	p := predicates.Annotation("example.com/expose").Exists()
	fmt.Println(p.Create(event.CreateEvent{Object: annotated("example.com/expose", "true")}))
	// Output: true
}

func ExampleAnnotation_changed() {
	p := predicates.Annotation("example.com/restart").Changed()
	fmt.Println(p.Update(update(annotated("example.com/restart", "1"), annotated("example.com/restart", "2"))))
	fmt.Println(p.Update(update(annotated("example.com/other", "1"), annotated("example.com/other", "2"))))
	// Output:
	// true
	// false
}

func ExampleGenerationChanged() {
	p := predicates.GenerationChanged()
	budget := func(generation int64, healthy int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy},
		}
	}
	fmt.Println("status:", p.Update(update(budget(1, 0), budget(1, 3))))
	fmt.Println("spec:", p.Update(update(budget(1, 0), budget(2, 0))))
	// Output:
	// status: false
	// spec: true
}

func ExampleSpecChanged() {
	p := predicates.SpecChanged(func(s *corev1.Secret) map[string][]byte { return s.Data })
	before := &corev1.Secret{Data: map[string][]byte{"password": []byte("a")}}
	after := &corev1.Secret{Data: map[string][]byte{"password": []byte("b")}}
	fmt.Println(p.Update(update(before, after)), p.Update(update(before, before)))
	// Output: true false
}

func ExampleFieldChanged() {
	p := predicates.FieldChanged(func(d *appsv1.Deployment) int32 { return d.Status.ReadyReplicas })
	two := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 2}}
	three := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 3}}
	fmt.Println(p.Update(update(two, three)), p.Update(update(three, three)))
	// Output: true false
}

// The function checks the status as well as the label. If the label changed while the operator was down, the status
// still says that the operator has to clean up.
func ExampleMatching() {
	served := predicates.Matching(func(p *corev1.Pod) bool { return p.Status.NominatedNodeName == "blue" })
	p := predicate.Or(predicates.Label("target").Equals("blue"), served)

	relabeled := labeled("target", "green")
	relabeled.Status.NominatedNodeName = "blue"
	fmt.Println(p.Create(event.CreateEvent{Object: relabeled}))
	// Output: true
}

func ExampleConditionChanged() {
	p := predicates.ConditionChanged("DisruptionAllowed",
		func(b *policyv1.PodDisruptionBudget) []metav1.Condition { return b.Status.Conditions })
	budget := func(status metav1.ConditionStatus, message string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{
			{Type: "DisruptionAllowed", Status: status, Reason: "Counted", Message: message},
		}}}
	}
	fmt.Println("status:", p.Update(update(budget("False", "1 of 3"), budget("True", "3 of 3"))))
	fmt.Println("message:", p.Update(update(budget("False", "1 of 3"), budget("False", "2 of 3"))))
	// Output:
	// status: true
	// message: false
}

func ExampleDeletionStarted() {
	p := predicate.Or(
		predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec }),
		predicates.DeletionStarted())
	now := metav1.Now()
	fmt.Println(p.Update(update(&corev1.Pod{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}})))
	// Output: true
}

func ExampleIsPaused() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"true", "2026-03-01T12:30:00Z", "2026-03-01T11:30:00Z"} {
		paused, until := predicates.IsPaused(annotated("opblocks.dev/paused", value), now)
		if paused && !until.IsZero() {
			fmt.Println("paused, requeue after", until.Sub(now))
		} else {
			fmt.Println(paused)
		}
	}
	// Output:
	// true
	// paused, requeue after 30m0s
	// false
}

func ExampleNotPaused() {
	p := predicates.NotPaused(time.Now)
	paused := annotated("opblocks.dev/paused", "")
	fmt.Println("start:", p.Update(update(&corev1.Pod{}, paused)))
	fmt.Println("paused:", p.Update(update(paused, paused)))
	fmt.Println("end:", p.Update(update(paused, &corev1.Pod{})))
	// Output:
	// start: true
	// paused: false
	// end: true
}

func ExamplePauseChanged() {
	p := predicates.PauseChanged()
	fmt.Println(p.Update(update(annotated("opblocks.dev/paused", "true"), &corev1.Pod{})))
	// Output: true
}

func ExampleNamespaces() {
	p := predicates.Namespaces("shop", "bank")
	fmt.Println(p.Create(event.CreateEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}}))
	// Output: true
}

func ExampleShard() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "0b0f2a51-27b5-4c5c-8f3f-4a2f8b1f7f01"}}
	for index := range 2 {
		p, err := predicates.Shard(index, 2)
		fmt.Println(index, p.Create(event.CreateEvent{Object: pod}), err)
	}
	// Output:
	// 0 false <nil>
	// 1 true <nil>
}

// The function is for WithFilter of package reconcile. Unlike a predicate of one watch, WithFilter also filters the
// reconciles that events of children trigger.
func ExampleShardOf() {
	const index, count = 1, 2
	ours := func(owner *corev1.Pod) bool { return predicates.ShardOf(owner, count) == index }
	fmt.Println(ours(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "0b0f2a51-27b5-4c5c-8f3f-4a2f8b1f7f01"}}))
	// Output: true
}

// A source for the builder's WatchesRawSource takes predicates of its own type.
func ExampleTyped() {
	dataChanged := predicates.SpecChanged(func(s *corev1.Secret) map[string][]byte { return s.Data })
	secrets := func(c cache.Cache, h handler.TypedEventHandler[*corev1.Secret, ctrl.Request]) source.Source {
		return source.Kind(c, &corev1.Secret{}, h, predicates.Typed[*corev1.Secret](dataChanged))
	}
	fmt.Println(secrets != nil)
	// Output: true
}
