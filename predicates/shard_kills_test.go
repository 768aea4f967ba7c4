//go:build !race

// The replicas are separate processes without shared memory, so the race detector would only make the test slow.

package predicates_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/opblocks/opblocks/predicates"
)

// TestShardsUnderKills runs three shards of an operator, each in its own process. The processes are killed while objects are
// created, changed and deleted. Then the test uses four shards, and then two. The audit log of the API server shows which
// process has reconciled which object.
func TestShardsUnderKills(t *testing.T) {
	t.Parallel()
	s := newShardedOperator(t)
	replicas := []*shardReplica{s.start(t, 0, 3), s.start(t, 1, 3), s.start(t, 2, 3)}
	for shard := range 3 {
		s.createUntil(t, shard, 3, 6)
	}
	s.settle(t, "the first objects", nobodyDown)

	for dead := range replicas {
		s.changeAll(t)
		replicas[dead].kill(t)
		left := s.disturb(t, dead)
		s.settle(t, fmt.Sprintf("shard %d is down", dead), func(b *policyv1.PodDisruptionBudget) bool {
			return predicates.ShardOf(b, 3) == dead
		})
		for _, name := range left {
			assert.NotContains(t, s.budget(t, name).Finalizers, servedFinalizer, "nobody else serves %s while shard %d is down", name, dead)
		}
		replicas[dead] = s.start(t, dead, 3)
		s.settle(t, fmt.Sprintf("shard %d is back", dead), nobodyDown)
	}

	for shard := range replicas { // start it without waiting for the previous replica
		s.changeAll(t)
		replicas[shard].kill(t)
		s.createUntil(t, shard, 3, 1)
		replicas[shard] = s.start(t, shard, 3)
	}
	s.settle(t, "killed one after another", nobodyDown)

	// To add a shard, the replicas get the new count first, and then the new replica starts.
	s.changeAll(t)
	for index := range replicas {
		replicas[index].kill(t)
		replicas[index] = s.start(t, index, 4)
	}
	s.createUntil(t, 3, 4, 2)
	s.settle(t, "nobody serves what moves to the new shard", func(b *policyv1.PodDisruptionBudget) bool { return predicates.ShardOf(b, 4) == 3 })
	replicas = append(replicas, s.start(t, 3, 4))
	s.settle(t, "four shards", nobodyDown)

	// To remove two shards, two replicas stop first, and then the others get the new count.
	s.changeAll(t)
	replicas[3].kill(t)
	replicas[2].kill(t)
	for index := range 2 {
		replicas[index].kill(t)
		replicas[index] = s.start(t, index, 2)
	}
	s.settle(t, "two shards", nobodyDown)

	for _, r := range replicas[:2] {
		r.kill(t)
	}
	s.checkAudit(t)
}

func nobodyDown(*policyv1.PodDisruptionBudget) bool { return false }
