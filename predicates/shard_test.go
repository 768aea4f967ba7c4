package predicates_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/predicates"
)

// numbered returns pod i, with a UID as the API server would set it.
func numbered(i int) *corev1.Pod {
	return pod(uid(fmt.Sprintf("%08x-5c1d-4f5e-9d7a-3b2a%08x", uint32(i)*2654435761, i)))
}

// TestShardOfIsStable proves that shards never change. If two versions of an operator disagreed, both would skip an
// object, or both would reconcile it.
func TestShardOfIsStable(t *testing.T) {
	var got []int
	for i := range 20 {
		got = append(got, predicates.ShardOf(numbered(i), 5))
	}
	want := []int{4, 0, 2, 2, 2, 3, 1, 0, 0, 0, 2, 2, 2, 2, 4, 0, 3, 1, 0, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Equal(t, 0, predicates.ShardOf(pod(uid("")), 7), "without a UID, namespace and name decide")
}

func TestShardOfSpreadsEvenly(t *testing.T) {
	const objects, count = 10000, 4
	shards := make([]int, count)
	for i := range objects {
		shards[predicates.ShardOf(numbered(i), count)]++
	}
	for shard, n := range shards {
		require.InDelta(t, objects/count, n, objects/count/10, "shard %d", shard)
	}
}

func TestShardOfMovesFewObjects(t *testing.T) {
	const objects = 10000
	moved := 0
	for i := range objects {
		before, after := predicates.ShardOf(numbered(i), 4), predicates.ShardOf(numbered(i), 5)
		if before != after {
			moved++
			require.Equal(t, 4, after, "an object moves only to the new shard")
		}
	}
	require.InDelta(t, objects/5, moved, objects/5/10)
}

// TestShardOfGrows proves that two operators never reconcile the same object while the count grows in the documented
// order, although they have different counts. When the count grows, an existing shard only loses objects.
func TestShardOfGrows(t *testing.T) {
	for i := range 2000 {
		obj := numbered(i)
		for count := 1; count < 8; count++ {
			for more := count + 1; more <= 8; more++ {
				if now := predicates.ShardOf(obj, more); now < count {
					require.Equal(t, predicates.ShardOf(obj, count), now, "an object moves from %d to %d shards only to a new one", count, more)
				}
			}
		}
	}
}

func TestShardOfSmallCounts(t *testing.T) {
	for _, count := range []int{-1, 0, 1} {
		require.Equal(t, 0, predicates.ShardOf(pod(), count))
	}
}

func TestShard(t *testing.T) {
	const count = 3
	for i := range 100 {
		obj, shards := numbered(i), 0
		for index := range count {
			p, err := predicates.Shard(index, count)
			require.NoError(t, err)
			events := []any{created(obj), updated(obj, obj), deleted(obj), missed(obj), generic(obj)}
			for _, e := range events {
				require.Equal(t, passes(p, events[0]), passes(p, e), "all events of an object pass in the same shard")
			}
			if passes(p, events[0]) {
				shards++
			}
		}
		require.Equal(t, 1, shards)
	}
}

func TestShardInvalid(t *testing.T) {
	for _, tc := range [][2]int{{3, 3}, {-1, 3}, {0, 0}, {0, -1}} {
		_, err := predicates.Shard(tc[0], tc[1])
		require.EqualError(t, err, fmt.Sprintf("shard %d of %d: use a count of at least 1, and an index from 0 to the count less one", tc[0], tc[1]))
	}
}
