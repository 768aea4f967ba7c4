//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package reconciletest_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The cache shows the past until a pass of every object has run, whichever object comes first.
func TestTimeTravelOfEachObject(t *testing.T) {
	for _, other := range []string{"aaa", "zzz"} {
		t.Run(other, func(t *testing.T) {
			s := faultyEffects["EffectForADeletedObject"].scenario(false)
			s.Objects = []client.Object{shop(func(s *Shop) { s.Name = other })}
			assert.True(t, hasFault(reconciletest.ExploreQuietly(t, s), kinds.TimeTravel))
		})
	}
}

// StaleLong costs exactly one more pass than Stale.
func TestStaleLongLastsTwoPasses(t *testing.T) {
	// passes counts the passes in all runs. Some runs happen at the same time.
	passes := map[kinds.Fault]*atomic.Int32{kinds.Stale: {}, kinds.StaleLong: {}}
	count := func(fault kinds.Fault) string { return string(fault) + ": added ConfigMap default/web #1" }
	for _, kind := range []kinds.Fault{kinds.Stale, kinds.StaleLong} {
		s := of(func(*reconciletest.Process) shopFunc {
			return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				is := config(s.Name)
				if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err == nil {
					return ctrl.Result{}, nil
				}
				passes[kind].Add(1)
				return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, owned(c, s, s.Name, nil)))
			}
		}, reconciletest.Create(shop()))
		assert.Empty(t, reconciletest.ExploreQuietly(t, s, reconciletest.Replay(count(kind))).Failures)
	}
	assert.Equal(t, passes[kinds.Stale].Load()+1, passes[kinds.StaleLong].Load())
}
