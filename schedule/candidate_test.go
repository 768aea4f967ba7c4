package schedule_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

func TestMayStart(t *testing.T) {
	one, two := utc(t, "2026-03-01 01:00"), utc(t, "2026-03-01 02:00")
	elsewhere := schedule.Candidate{Object: types.NamespacedName{Namespace: "bank", Name: "z"}, Due: one}
	cases := map[string]struct {
		reason string
		limit  int
		all    []schedule.Candidate
		want   []string
	}{
		"NoLimit":  {"Zero means no limit.", 0, []schedule.Candidate{waits("a", one), waits("b", one), runs("c")}, []string{"a", "b"}},
		"Negative": {"Less than zero means no limit.", -1, []schedule.Candidate{waits("a", one), runs("c")}, []string{"a"}},
		"Oldest":   {"The earliest Due comes first.", 1, []schedule.Candidate{waits("a", two), waits("b", one)}, []string{"b"}},
		"Names":    {"Equal ones are ordered by namespace and name.", 2, []schedule.Candidate{waits("b", one), waits("c", one), waits("a", one), elsewhere}, []string{"a", "z"}},
		"Running":  {"A running candidate counts, whenever it was due.", 2, []schedule.Candidate{waits("a", one), waits("b", one), runs("z")}, []string{"a"}},
		"Full":     {"The limit is reached.", 1, []schedule.Candidate{waits("a", one), runs("z")}, nil},
		"Lowered":  {"More are running than a lowered limit allows.", 1, []schedule.Candidate{waits("a", one), runs("y"), runs("z")}, nil},
		"Twice":    {"The candidate itself is not counted.", 1, []schedule.Candidate{waits("a", two), waits("a", two)}, []string{"a", "a"}},
		"Nobody":   {"No candidate waits.", 1, []schedule.Candidate{runs("z")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, admitted(tc.limit, tc.all)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	require.True(t, waits("a", one).MayStart(1, slices.Values([]schedule.Candidate(nil))), "there are no other candidates")
	require.True(t, runs("a").MayStart(1, slices.Values([]schedule.Candidate{runs("a"), runs("b")})), "a running candidate continues")
}

// TestMayStartStopsEarly proves that MayStart does not read all candidates if the candidate may not start, because
// there may be thousands of them.
func TestMayStartStopsEarly(t *testing.T) {
	one, two := utc(t, "2026-03-01 01:00"), utc(t, "2026-03-01 02:00")
	read := 0
	all := func(yield func(schedule.Candidate) bool) {
		for range 1000 {
			if read++; !yield(waits("other", one)) {
				return
			}
		}
	}
	require.False(t, waits("own", two).MayStart(25, all))
	require.Equal(t, 25, read)
}

// TestMayStartStaleCache calls MayStart for the candidates in any order. The cache shows late that others have started.
// The test proves that no more candidates run than the limit allows, and that in the end all have run.
func TestMayStartStaleCache(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		limit, count := 1+random.IntN(5), 1+random.IntN(20)
		start := utc(t, "2026-03-01 00:00")
		var live []schedule.Candidate
		for i := range count {
			live = append(live, waits(string(rune('a'+i)), start.Add(time.Duration(random.IntN(3))*time.Hour)))
		}
		cache := slices.Clone(live) // for each candidate, the cache has its present or an earlier state
		for finished := 0; finished < count; {
			for _, i := range random.Perm(len(live)) {
				if !live[i].Running && live[i].MayStart(limit, slices.Values(cache)) {
					live[i].Running = true
				}
				if random.IntN(2) == 0 {
					cache[i] = live[i]
				}
			}
			running := slices.IndexFunc(live, func(c schedule.Candidate) bool { return c.Running })
			require.GreaterOrEqual(t, running, 0, "some candidate may always start")
			n := 0
			for _, c := range live {
				if c.Running {
					n++
				}
			}
			require.LessOrEqual(t, n, limit)
			live, cache = slices.Delete(live, running, running+1), slices.Delete(cache, running, running+1)
			finished++
		}
	}
}

func TestNextToStart(t *testing.T) {
	one, two := utc(t, "2026-03-01 01:00"), utc(t, "2026-03-01 02:00")
	all := []schedule.Candidate{waits("c", two), runs("r"), waits("b", one), waits("a", one)}
	for limit, want := range map[int][]string{-1: nil, 0: nil, 1: nil, 2: {"a"}, 3: {"a", "b"}, 9: {"a", "b", "c"}} {
		var names []string
		for _, name := range schedule.NextToStart(limit, slices.Values(all)) {
			names = append(names, name.Name)
		}
		require.Equal(t, want, names, "limit %d", limit)
		if limit > 0 {
			slices.Sort(names)
			require.Equal(t, admitted(limit, all), names, "those that are returned may start: limit %d", limit)
		}
	}
}
