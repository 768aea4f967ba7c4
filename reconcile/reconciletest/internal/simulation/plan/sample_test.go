package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

func TestShuffled(t *testing.T) {
	var faults []Fault
	for nth := 1; nth <= 50; nth++ {
		faults = append(faults, Fault{kinds.CrashBefore, "update Shop a", nth})
	}
	for nth := 1; nth <= 3; nth++ {
		faults = append(faults, Fault{kinds.Timeout, "update Shop a", nth}, Fault{kinds.Stale, "modified Shop a", nth})
	}
	got := Shuffled(faults, 7)
	assert.Empty(t, cmp.Diff(got, Shuffled(faults, 7)), "a seed leads to the same order again")
	assert.NotEmpty(t, cmp.Diff(got, Shuffled(faults, 8)), "another seed leads to another order")
	assert.ElementsMatch(t, faults, got, "each fault is tried once")

	counts := map[kinds.Fault]int{}
	for _, f := range got[:9] {
		counts[f.Kind]++
	}
	assert.Equal(t, map[kinds.Fault]int{kinds.CrashBefore: 3, kinds.Timeout: 3, kinds.Stale: 3}, counts, "the kinds take turns")
}

// The faults of a rule without a bit would never be tried as a second fault.
func TestEachRuleHasABit(t *testing.T) {
	for _, kind := range kinds.Faults() {
		assert.Equal(t, kind, kindAt(kindSet([]kinds.Fault{kind}), 0))
	}
}

func TestPairs(t *testing.T) {
	points := []Point{
		{Name: "update Shop a", Nth: 1, Call: &request.Call{Request: request.Request{Verb: "update"}}},
		{Name: "update Shop a", Nth: 2, Call: &request.Call{Request: request.Request{Verb: "update"}}},
		{Name: "modified Shop a", Nth: 1, Watched: true},
	}
	tried := func(p *Point) []kinds.Fault {
		return slices.DeleteFunc(p.Faults(), func(kind kinds.Fault) bool {
			return kind != kinds.CrashBefore && kind != kinds.Timeout && kind != kinds.Stale
		})
	}
	singles := func() []Single {
		return []Single{
			NewSingle(Fault{kinds.Timeout, "update Shop a", 2}, points, tried),
			NewSingle(Fault{kinds.CrashBefore, "update Shop a", 1}, points, tried),
		}
	}
	first, second := Fault{kinds.CrashBefore, "update Shop a", 1}, Fault{kinds.Timeout, "update Shop a", 2}
	stale := Fault{kinds.Stale, "modified Shop a", 1}

	possible, all := Pairs(singles(), 100, 1)
	assert.Equal(t, 4, possible)
	assert.ElementsMatch(t, [][]Fault{
		{first, {kinds.CrashBefore, "update Shop a", 2}}, {first, second}, {first, stale}, {second, stale},
	}, all, "a second fault comes at a later point")

	possible, sample := Pairs(singles(), 2, 1)
	assert.Equal(t, 4, possible)
	assert.Len(t, sample, 2)
	_, again := Pairs(singles(), 2, 1)
	assert.Equal(t, sample, again, "a seed leads to the same sample again")
}

func TestChoose(t *testing.T) {
	all := choose(100, 100, random(3))
	slices.Sort(all)
	for i, n := range all {
		assert.Equal(t, i, n, "each number is chosen once")
	}
	assert.Len(t, choose(1_000_000_000, 5, rand.New(rand.NewPCG(1, 0))), 5, "it does not hold all numbers in memory")
	assert.Empty(t, choose(0, 0, random(1)))
}
