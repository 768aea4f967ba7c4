package predicates

import (
	"fmt"
	"hash/fnv"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Shard passes events of all kinds of those objects whose shard has this index, from 0 to count-1, so that several
// operators share the objects of a kind. It is for the watch on one's own kind: a child has another UID than its owner, and
// so in general another shard; map its event to the owner, and ask [ShardOf] of that.
//
// Each operator still caches all objects. While count changes, operators with the old and with the new one may both hold an
// object: stop the old ones first.
//
// The error says that index or count is out of range.
func Shard(index, count int) (predicate.Predicate, error) {
	if count < 1 || index < 0 || index >= count {
		return nil, fmt.Errorf("shard %d of %d: the index goes from 0 to the count less one", index, count)
	}
	return matchingForLife(func(obj client.Object) bool { return ShardOf(obj, count) == index }), nil
}

// ShardOf gives the shard of an object, from 0 to count-1; of a count below 2 it is 0. It depends on the UID alone, or on
// namespace and name where there is no UID (controller-runtime's fake client gives none), and is the same in every process,
// platform and version. When count grows by one, 1/count of the objects move, all of them to the new shard.
func ShardOf(obj client.Object, count int) int {
	id := string(obj.GetUID())
	if id == "" {
		id = obj.GetNamespace() + "/" + obj.GetName()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return jump(h.Sum64(), count)
}

// jump is the consistent hash of Lamping and Veach, https://arxiv.org/abs/1406.2294.
func jump(key uint64, count int) int {
	bucket, next := int64(0), int64(0)
	for next < int64(count) {
		bucket = next
		key = key*2862933555777941757 + 1
		next = int64(float64(bucket+1) * (float64(int64(1)<<31) / float64((key>>33)+1)))
	}
	return int(bucket)
}
