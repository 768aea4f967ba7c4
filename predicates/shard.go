package predicates

import (
	"fmt"
	"hash/fnv"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Shard passes all events of objects for which [ShardOf] returns index. It divides the objects of a kind among count
// operators; index is from 0 to count-1. The shard of an object never changes. So a deletion passes only if the last
// known state matches, even if that state is not the final one.
//
// Use it only on the watch of the controller's own kind. Shard alone is not enough for a controller that has other watches: a
// child has another UID than its owner, so the event of a child passes in every operator, and triggers a reconcile of its owner
// there. So in every pass, the reconciler has to compare ShardOf of the object that it has read with index. If they differ, it
// has to do nothing. With package reconcile, the method WithFilter does both, and Shard is not needed:
//
//	WithFilter(func(a *v1.App) bool { return predicates.ShardOf(a, count) == index })
//
// Each operator still caches all objects and their children. No two operators may run with the same index. All must have
// the same count, except while you change the count in this order:
//
//   - To add one: restart the existing operators with the new count, one after another, and then start the new
//     operator.
//   - To remove one: stop the operator with the last index, and then restart the others with the new count, one after another.
//
// Then two operators never reconcile one object at the same time. Objects that move to another shard are not reconciled for a
// while.
//
// Shard returns an error if count is less than 1, or index is not from 0 to count-1.
func Shard(index, count int) (predicate.Predicate, error) {
	if count < 1 || index < 0 || index >= count {
		return nil, fmt.Errorf("shard %d of %d: use a count of at least 1, and an index from 0 to the count less one", index, count)
	}
	return matchingImmutable(func(obj client.Object) bool { return ShardOf(obj, count) == index }), nil
}

// ShardOf returns the shard of an object, from 0 to count-1. If count is less than 2, it returns 0. The shard depends
// only on the UID. If the UID is empty (controller-runtime's fake client sets none), it depends only on namespace and
// name. The shard is the same in every process, on every platform and in every version of this package. When count
// grows by one, 1/count of the objects move, all to the new shard. The algorithm is the jump consistent hash of
// Lamping and Veach, https://arxiv.org/abs/1406.2294.
func ShardOf(obj client.Object, count int) int {
	id := string(obj.GetUID())
	if id == "" {
		id = obj.GetNamespace() + "/" + obj.GetName()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return jumpHash(h.Sum64(), count)
}

// jumpHash is the consistent hash of Lamping and Veach.
func jumpHash(key uint64, count int) int {
	bucket, next := int64(0), int64(0)
	for next < int64(count) {
		bucket = next
		key = key*2862933555777941757 + 1
		next = int64(float64(bucket+1) * (float64(int64(1)<<31) / float64((key>>33)+1)))
	}
	return int(bucket)
}
