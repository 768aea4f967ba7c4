package simulation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

func TestShuffled(t *testing.T) {
	var faults []Fault
	for nth := 1; nth <= 50; nth++ {
		faults = append(faults, Fault{kinds.CrashBefore, "update Shop a", nth})
	}
	for nth := 1; nth <= 3; nth++ {
		faults = append(faults, Fault{kinds.Timeout, "update Shop a", nth}, Fault{kinds.Stale, "modified Shop a", nth})
	}
	got := shuffled(faults, 7)
	assert.Empty(t, cmp.Diff(got, shuffled(faults, 7)), "a seed leads to the same order again")
	assert.NotEmpty(t, cmp.Diff(got, shuffled(faults, 8)), "another seed leads to another order")
	assert.ElementsMatch(t, faults, got, "each fault is tried once")

	counts := map[kinds.Fault]int{}
	for _, f := range got[:9] {
		counts[f.Kind]++
	}
	assert.Equal(t, map[kinds.Fault]int{kinds.CrashBefore: 3, kinds.Timeout: 3, kinds.Stale: 3}, counts, "the kinds take turns")
}

func TestPairs(t *testing.T) {
	points := []point{
		{name: "update Shop a", nth: 1, call: &call{Request: Request{Verb: "update"}}},
		{name: "update Shop a", nth: 2, call: &call{Request: Request{Verb: "update"}}},
		{name: "modified Shop a", nth: 1, watched: true},
	}
	tried := func(p *point) []kinds.Fault {
		return slices.DeleteFunc(p.faults(), func(kind kinds.Fault) bool {
			return kind != kinds.CrashBefore && kind != kinds.Timeout && kind != kinds.Stale
		})
	}
	singles := func() []single {
		return []single{
			newSingle(&result{faults: []Fault{{kinds.Timeout, "update Shop a", 2}}, points: points}, tried),
			newSingle(&result{faults: []Fault{{kinds.CrashBefore, "update Shop a", 1}}, points: points}, tried),
		}
	}
	first, second := Fault{kinds.CrashBefore, "update Shop a", 1}, Fault{kinds.Timeout, "update Shop a", 2}
	stale := Fault{kinds.Stale, "modified Shop a", 1}

	possible, all := pairs(singles(), 100, 1)
	assert.Equal(t, 4, possible)
	assert.ElementsMatch(t, [][]Fault{
		{first, {kinds.CrashBefore, "update Shop a", 2}}, {first, second}, {first, stale}, {second, stale},
	}, all, "a second fault comes at a later point")

	possible, sample := pairs(singles(), 2, 1)
	assert.Equal(t, 4, possible)
	assert.Len(t, sample, 2)
	_, again := pairs(singles(), 2, 1)
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
