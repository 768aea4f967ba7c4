package calls

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// After each failure to reach a server, the pause before the next attempt doubles, from the first to the longest.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

const (
	// longestWait limits the delay until a pass asks for a token again. A quota that gives tokens less often does not make the delay longer.
	longestWait = time.Minute
	// forgottenAfter is how long after the end of its pause a server is forgotten, if nobody calls it any more.
	forgottenAfter = 5 * time.Minute
	// sweepEvery is the time between two searches for servers that nobody calls any more.
	sweepEvery = time.Minute
	// busyDelay is the delay of a pass after its server was busy with too many other passes.
	busyDelay = time.Second
)

// gate decides which passes may call the API now. It holds the state of the servers that are called, cannot be reached, or have asked
// to wait. It forgets a server when none of these is true, or when nobody has called the server for a while.
type gate struct {
	quota       *rate.Limiter // nil: no limit
	concurrency int           // for each server; 0: no limit

	mu       sync.Mutex
	servers  map[string]*server
	swept    time.Time // the last search for servers that nobody calls
	nextPoll time.Time // the time of the last poll that was put off

	nextUrgent time.Time // the time of the last urgent pass that was put off
	slots      map[types.NamespacedName]quotaSlot
}

// server is the state of a server.
type server struct {
	passes  int           // the number of passes that call it now
	until   time.Time     // the server has asked to wait until then
	asks    string        // the first words in which it has asked to wait, since its last other answer
	failure error         // why it counts as unreachable; nil if it can be reached
	pause   time.Duration // the length of the last pause
	opens   time.Time     // when the pause ends
	probing bool          // a pass is finding out whether the server can be reached again
}

// denial says why a pass may not call the API now, and when it should come again.
type denial struct {
	reason, message string
	waitsFor        string // the label of the metric
	after           time.Duration
}

// enter admits a pass to a server. An admitted pass has to call leave. While the server cannot be reached, enter admits one pass after
// each pause, and denies all others.
func (g *gate) enter(now time.Time, name string) (isProbe bool, denied *denial) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	s := g.servers[name]
	if s == nil {
		s = &server{}
		if g.servers == nil {
			g.servers = map[string]*server{}
		}
		g.servers[name] = s
	}
	switch {
	case now.Before(s.until):
		return false, &denial{ReasonRateLimited, s.asks, waitsForThrottling, s.until.Sub(now)}
	case s.failure != nil && (s.probing || now.Before(s.opens)):
		return false, &denial{reasonOf(s.failure), s.failure.Error(), waitsForServer, max(s.opens.Sub(now), firstPause)}
	case g.concurrency > 0 && s.passes >= g.concurrency:
		return false, &denial{ReasonBusy, "other objects are being handled at the same server", waitsForConcurrency, busyDelay}
	}
	s.passes++
	s.probing = s.failure != nil
	return s.probing, nil
}

// leave ends a pass. If the server could not be reached, trouble is the error. answered reports whether the server gave an answer that does
// not ask to wait.
func (g *gate) leave(now time.Time, name string, isProbe, answered bool, trouble error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.servers[name]
	s.passes--
	if isProbe {
		s.probing = false
	}
	switch {
	case trouble != nil && (isProbe || s.failure == nil):
		s.failure, s.pause = trouble, min(max(2*s.pause, firstPause), longestPause)
		s.opens = now.Add(s.pause)
	case trouble == nil && answered:
		s.failure, s.pause = nil, 0
		if !now.Before(s.until) {
			s.asks = ""
		}
	}
	if s.passes == 0 && s.failure == nil && !now.Before(s.until) {
		delete(g.servers, name)
	}
}

// isSpared reports whether calls of the server are held back: the server could not be reached, and objects still want to call it.
func (s *server) isSpared(now time.Time) bool {
	return s.failure != nil && (s.passes > 0 || now.Before(s.opens.Add(forgottenAfter)))
}

// sweep forgets the servers that nobody calls any more, such as after the deletion of their last object.
func (g *gate) sweep(now time.Time) {
	if now.Before(g.swept.Add(sweepEvery)) {
		return
	}
	g.swept = now
	for name, s := range g.servers {
		if s.passes == 0 && !s.isSpared(now) && !now.Before(s.until) {
			delete(g.servers, name)
		}
	}
}

// spared returns the number of servers that are not called because they could not be reached.
func (g *gate) spared(now time.Time) (count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.servers {
		if s.isSpared(now) {
			count++
		}
	}
	return count
}

// throttle closes a server that asks to wait, for all passes. The caller has entered. throttle returns the first words in which the server
// has asked. The conditions of all waiting objects show these words. So no status has to be written when the server repeats its request in
// other words.
func (g *gate) throttle(now time.Time, name string, throttled *throttledError) (words string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.servers[name]
	if now.Add(throttled.after).After(s.until) {
		s.until = now.Add(throttled.after)
	}
	s.failure, s.pause = nil, 0 // the server has answered, so it can be reached
	s.asks = cmp.Or(s.asks, throttled.Error())
	return s.asks
}

// take takes a token of the quota, or says when the pass should run again. A poll leaves some tokens to urgent passes. Each object has one
// slot, however often events make it ask, and the slots follow each other as fast as the quota allows. A waiting pass does not hold a
// worker. A pass in the middle of its work may have many more calls to make, so its slot is at a time at which several tokens are there.
func (g *gate) take(now time.Time, object types.NamespacedName, urgent, inTheMiddle bool) *denial {
	if g.quota == nil || g.quota.Limit() == rate.Inf {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	reserve, next := 0.0, &g.nextUrgent
	if !urgent {
		reserve, next = float64(g.quota.Burst()/4), &g.nextPoll
	}
	missing := reserve + 1 - g.quota.TokensAt(now)
	if missing <= 0 && g.quota.AllowN(now, 1) {
		delete(g.slots, object)
		return nil
	}
	slot := g.slots[object]
	if slot.urgent != urgent || !now.Before(slot.at) {
		if first := now.Add(g.timeFor(missing - 1)); next.Before(first) {
			*next = first
		}
		*next = next.Add(g.timeFor(1))
		if slot = (quotaSlot{*next, urgent}); inTheMiddle {
			slot.at = slot.at.Add(g.timeFor(float64(g.quota.Burst()/2 - 1)))
		}
		if g.slots == nil {
			g.slots = map[types.NamespacedName]quotaSlot{}
		}
		g.slots[object] = slot
	}
	return &denial{ReasonRateLimited, "the quota of calls is used up", waitsForQuota, slot.at.Sub(now)}
}

// quotaSlot is the time at which the pass of an object that was put off runs again.
type quotaSlot struct {
	at     time.Time
	urgent bool
}

// forget drops the slot of an object.
func (g *gate) forget(object types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.slots, object)
}

// charge takes a token even if there is none yet: later passes wait for it.
func (g *gate) charge(now time.Time) {
	if g.quota != nil {
		g.quota.ReserveN(now, 1)
	}
}

// timeFor returns how long the quota takes to give this number of tokens. If the limit of the quota is zero, timeFor returns a second.
func (g *gate) timeFor(tokens float64) time.Duration {
	limit := float64(g.quota.Limit())
	if limit <= 0 {
		return time.Second
	}
	return time.Duration(min(max(tokens, 0)/limit, longestWait.Seconds()) * float64(time.Second))
}
