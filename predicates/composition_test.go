package predicates_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/predicates"
)

// What And, Or and Not make of filters that look at the old and the new object.
func TestComposition(t *testing.T) {
	isBlue, isLarge := predicates.Label("target", "blue"), predicates.Label("size", "large")
	large := label("size", "large")
	both := predicate.And(isBlue, isLarge)
	notBlue := predicate.Not(isBlue)
	notBlueByFunction := predicates.Matching(func(p *corev1.Pod) bool { return p.Labels["target"] != "blue" })
	narrow := predicate.And(isBlue, predicates.GenerationChanged())
	wide := predicate.And(isBlue, predicate.Or(predicates.GenerationChanged(), predicates.LabelChanged("target")))
	notChanged := predicate.Not(predicates.GenerationChanged())
	eitherBlue := predicate.Or(isBlue, predicates.Matching(func(p *corev1.Pod) bool { return p.Annotations["served-by"] == "blue" }))
	servedByBlue := annotation("served-by", "blue")
	cases{
		"AndOfFilters":         {"matches both", both, updated(pod(blue, large), pod(blue, large)), true},
		"AndOfFiltersByHalves": {"surprise: never both at once, but the old one here and the new one there", both, updated(pod(blue), pod(large)), true},
		"AndOfFiltersNow":      {"to look at one object at a time, write one function", predicates.Matching(func(p *corev1.Pod) bool { return p.Labels["target"] == "blue" && p.Labels["size"] == "large" }), updated(pod(blue), pod(large)), false},

		"NotFilterComes":   {"surprise: an object that becomes blue was not blue, and is dropped", notBlue, updated(pod(green), pod(blue)), false},
		"NotFilterGoes":    {"surprise: an object that is blue no more is dropped", notBlue, updated(pod(blue), pod(green)), false},
		"NotFilterNever":   {"what never was blue passes", notBlue, updated(pod(green), pod(green)), true},
		"NotFilterUnknown": {"surprise: a deletion that was missed passes the filter, and so not its negation", notBlue, missed(pod(green)), false},
		"FunctionComes":    {"the old object is not blue", notBlueByFunction, updated(pod(green), pod(blue)), true},
		"FunctionGoes":     {"the new object is not blue", notBlueByFunction, updated(pod(blue), pod(green)), true},
		"FunctionStays":    {"both are blue", notBlueByFunction, updated(pod(blue), pod(blue)), false},
		"FunctionUnknown":  {"it may have been something else in the end", notBlueByFunction, missed(pod(blue)), true},

		"GenerationLosesLeaving":  {"surprise: relabelling changes no generation", narrow, updated(pod(blue), pod(green)), false},
		"GenerationLosesEntering": {"surprise: relabelling changes no generation", narrow, updated(pod(green), pod(blue)), false},
		"WithLabelLeaving":        {"so a change of the label counts too", wide, updated(pod(blue), pod(green)), true},
		"WithLabelEntering":       {"so a change of the label counts too", wide, updated(pod(green), pod(blue)), true},
		"WithLabelStatus":         {"a status that was written is dropped", wide, updated(pod(blue), pod(blue, version("101"))), false},
		"WithLabelOthers":         {"others' relabelling is dropped", wide, updated(pod(green), pod(label("target", "red"))), false},
		"WithLabelCreated":        {"a creation of ours", wide, created(pod(blue)), true},
		"WithLabelDeleted":        {"a deletion of another's", wide, deleted(pod(green)), false},

		"NotChangeCreated": {"surprise: what always passes never does", notChanged, created(pod()), false},
		"NotChangeUpdated": {"the rest", notChanged, updated(pod(), pod(version("101"))), true},

		"OrOfFilters": {"relabelled while the operator was down: its status still says whose it is", eitherBlue, created(pod(green, servedByBlue)), true},
	}.run(t)
}

func TestTyped(t *testing.T) {
	p := predicates.Typed[*corev1.Pod](predicates.Label("target", "blue"))
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

func TestLabelSelector(t *testing.T) {
	selector, err := predicates.LabelSelector("target", "blue")
	require.NoError(t, err)
	require.Equal(t, "target=blue", selector.String())

	_, err = predicates.LabelSelector("target", "not a value")
	require.ErrorContains(t, err, `label target=not a value: `)
	_, err = predicates.LabelSelector("/", "blue")
	require.ErrorContains(t, err, `label /=blue: `)
}
