package plan

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// random returns the source of random numbers for a sample. The same seed leads to the same sample.
func random(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a sample that can be repeated
}

// Shuffled returns the faults in the order in which they are tried. Within a kind the order is random, and the kinds take turns. So the
// first n faults are a good sample for every n.
func Shuffled(faults []Fault, seed uint64) []Fault {
	all := slices.Clone(faults)
	random(seed).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	type ranked struct {
		Fault
		rank int // its position within its kind
	}
	count := map[kinds.Fault]int{}
	ranks := make([]ranked, len(all))
	for i, f := range all {
		ranks[i] = ranked{f, count[f.Kind]}
		count[f.Kind]++
	}
	slices.SortStableFunc(ranks, func(a, b ranked) int { return a.rank - b.rank })
	for i := range ranks {
		all[i] = ranks[i].Fault
	}
	return all
}

// Single is a run with one fault, and the points after the fault at which a second fault can be injected. There are thousands of Singles,
// so a Single holds no requests and no objects.
type Single struct {
	fault   Fault
	after   []place
	seconds int // the number of second faults: the kinds of all points in after
}

// place is a point, and the kinds of faults to try there. Bit i of kinds stands for kinds.Rules[i], so there can be at most 32 rules.
type place struct {
	name  string
	nth   int
	kinds uint32
}

// NewSingle returns the Single of a run with this fault. points are all points of the run. tried returns the kinds of faults to try at a
// point.
func NewSingle(fault Fault, points []Point, tried func(p *Point) []kinds.Fault) Single {
	s := Single{fault: fault}
	injected := false
	for i := range points {
		p := &points[i]
		if p.Name == s.fault.At && p.Nth == s.fault.Nth {
			injected = true
			continue
		}
		if !injected {
			continue
		}
		if set := kindSet(tried(p)); set != 0 {
			s.after = append(s.after, place{p.Name, p.Nth, set})
			s.seconds += bits.OnesCount32(set)
		}
	}
	return s
}

// kindSet returns the kinds as bits of a number: see place.
func kindSet(of []kinds.Fault) (set uint32) {
	for i := range kinds.Rules {
		if slices.Contains(of, kinds.Rules[i].Kind) {
			set |= 1 << i
		}
	}
	return set
}

// kindAt returns the kind of the n-th bit that is set, counted from 0.
func kindAt(set uint32, n int) kinds.Fault {
	for range n {
		set &= set - 1
	}
	return kinds.Rules[bits.TrailingZeros32(set)].Kind
}

// Pairs returns the number of possible pairs of a fault and a later second fault. It also returns a random sample of at most limit pairs,
// in random order. It does not hold all pairs in memory.
func Pairs(singles []Single, limit int, seed uint64) (possible int, sample [][]Fault) {
	slices.SortFunc(singles, func(a, b Single) int { // the order in which the runs ended is random
		return strings.Compare(a.fault.String(), b.fault.String())
	})
	for i := range singles {
		possible += singles[i].seconds
	}
	for _, n := range choose(possible, min(limit, possible), random(seed)) {
		for i := range singles {
			if n >= singles[i].seconds {
				n -= singles[i].seconds
				continue
			}
			sample = append(sample, []Fault{singles[i].fault, singles[i].second(n)})
			break
		}
	}
	return possible, sample
}

// second returns the n-th possible second fault, counted from 0.
func (s *Single) second(n int) Fault {
	for _, p := range s.after {
		if kinds := bits.OnesCount32(p.kinds); n >= kinds {
			n -= kinds
			continue
		}
		return Fault{kindAt(p.kinds, n), p.name, p.nth}
	}
	return Fault{} // never reached: n is less than seconds
}

// choose returns k different numbers from 0 to n-1 in random order.
func choose(n, k int, random *rand.Rand) []int {
	moved := map[int]int{} // the number at each position that the shuffle has changed
	at := func(i int) int {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	chosen := make([]int, k)
	for i := range chosen {
		j := i + random.IntN(n-i)
		chosen[i] = at(j)
		moved[j] = at(i)
	}
	return chosen
}
