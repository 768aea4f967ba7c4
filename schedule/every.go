package schedule

// grid is the times of @every: the anchor, and then one every so many seconds. The anchor itself is none of them.
//
// robfig counts an interval from the last run instead, which in an operator that restarts means from the restart: it then
// comes late, or never if restarts are more frequent.
type grid struct{ anchor, every int64 }

// steps is how many times have come until t, which is not before the anchor.
func (g grid) steps(t int64) int64 { return (t - g.anchor) / g.every }

func (g grid) next(after int64) int64 { return g.anchor + (g.steps(after)+1)*g.every }

func (g grid) latest(after, until int64) (at int64, count int) {
	before, steps := g.steps(after), g.steps(until)
	if steps <= before {
		return 0, 0
	}
	return g.anchor + steps*g.every, int(steps - before)
}

// floorDiv and floorMod are division and rest for negative numbers too: the rest is never negative.
func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }
