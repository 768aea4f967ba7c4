package predicates

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// GenerationChanged passes updates that change metadata.generation, and everything that is no update, as [FieldChanged]
// does. What moves the generation is the API server's decision:
//
//   - a change of the spec does; of a custom resource so does every other field but metadata and, where it is a subresource, status;
//   - the beginning of a deletion does, when a finalizer holds the object;
//   - labels, annotations, finalizers and owner references do not, except that annotations of a Deployment do;
//   - a custom resource without the status subresource gets a new generation with each write of its status, which makes a
//     controller that writes it wake itself.
//
// Kinds without generation, such as ConfigMap, Secret and ServiceAccount, pass with every write, since nothing is known;
// controller-runtime's GenerationChangedPredicate drops all their updates. Their resyncs do not pass.
func GenerationChanged() predicate.Predicate {
	return changed(func(before, after client.Object) bool {
		if before.GetGeneration() == 0 && after.GetGeneration() == 0 {
			return before.GetResourceVersion() != after.GetResourceVersion()
		}
		return before.GetGeneration() != after.GetGeneration()
	})
}
