package predicates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/predicates"
)

func TestTyped(t *testing.T) {
	p := predicates.Typed[*corev1.Pod](predicates.Label("target").Equals("blue"))
	require.True(t, p.Create(event.TypedCreateEvent[*corev1.Pod]{Object: pod(blue)}))
	require.True(t, p.Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: pod(blue), ObjectNew: pod(green)}))
	require.False(t, p.Delete(event.TypedDeleteEvent[*corev1.Pod]{Object: pod(green)}))
	require.True(t, p.Delete(event.TypedDeleteEvent[*corev1.Pod]{Object: pod(green), DeleteStateUnknown: true}))
	require.False(t, p.Generic(event.TypedGenericEvent[*corev1.Pod]{Object: pod(green)}))

	require.False(t, p.Create(event.TypedCreateEvent[*corev1.Pod]{}), "no object")
	require.False(t, p.Update(event.TypedUpdateEvent[*corev1.Pod]{}), "no object")
	require.False(t, p.Delete(event.TypedDeleteEvent[*corev1.Pod]{}), "no object")
	require.False(t, p.Generic(event.TypedGenericEvent[*corev1.Pod]{}), "no object")
}

func TestNilObjects(t *testing.T) {
	shard, err := predicates.Shard(0, 1)
	require.NoError(t, err)
	all := map[string]predicate.Predicate{
		"Label":             predicates.Label("a").Equals("b"),
		"HasLabel":          predicates.Label("a").Exists(),
		"LabelChanged":      predicates.Label("a").Changed(),
		"HasAnnotation":     predicates.Annotation("a").Exists(),
		"AnnotationChanged": predicates.Annotation("a").Changed(),
		"GenerationChanged": predicates.GenerationChanged(),
		"FieldChanged":      predicates.FieldChanged(func(p *corev1.Pod) string { return p.Name }),
		"SpecChanged":       predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec }),
		"Matching":          predicates.Matching(func(p *corev1.Pod) bool { return p.Name == "" }),
		"ConditionChanged":  predicates.ConditionChanged("Ready", func(p *corev1.Pod) []metav1.Condition { _ = p.Status; return nil }),
		"DeletionStarted":   predicates.DeletionStarted(),
		"PauseChanged":      predicates.PauseChanged(),
		"NotPaused":         predicates.NotPaused(time.Now),
		"Namespaces":        predicates.Namespaces(),
		"Shard":             shard,
	}
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			for _, none := range []client.Object{nil, (*corev1.Pod)(nil)} {
				for _, e := range []any{created(none), updated(none, none), deleted(none), missed(none), generic(none)} {
					require.False(t, passes(p, e), "%T of %#v", e, none)
				}
				require.NotPanics(t, func() {
					passes(p, updated(pod(), none))
					passes(p, updated(none, pod()))
				})
			}
		})
	}
}
