package calls

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// If a server cannot be reached, there is a pause before the next attempt. It doubles after each failure, from
// firstPause to longestPause.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

const (
	// longestWait is the longest delay until a pass asks for a token of the quota again, even if the quota gives tokens less often.
	longestWait = time.Minute
	// forgottenAfter is how long after the end of its pause a server is forgotten, if nobody calls it.
	forgottenAfter = 5 * time.Minute
	// sweepEvery is the time between two searches for servers that nobody calls any more.
	sweepEvery = time.Minute
	// busyDelay is the delay of a pass if too many other passes call the same server.
	busyDelay = time.Second
)

// gate decides which passes may call the API now. It has the state of the servers that are being called, cannot be reached, or have
// asked to wait. It forgets all other servers, and servers that nobody has called for a while.
type gate struct {
	quota       *rate.Limiter // nil: no limit
	concurrency int           // for each server; 0: no limit

	mu       sync.Mutex
	servers  map[string]*server
	swept    time.Time // when servers were last forgotten
	nextPoll time.Time // when the poll runs that was put off last

	nextUrgent time.Time // when the urgent pass runs that was put off last
	slots      map[types.NamespacedName]quotaSlot
}

// server is the state of a server.
type server struct {
	passes  int           // how many passes call the server now
	until   time.Time     // the server has asked to wait until then
	asks    string        // the text of its first request to wait; it is kept until the server gives another answer
	failure error         // why the server cannot be reached; nil if it can
	pause   time.Duration // the length of the last pause
	opens   time.Time     // when the pause ends
	probing bool          // a pass is trying whether the server can be reached again
}

// denial says why a pass may not call the API now, and when it should try again.
type denial struct {
	reason, message string
	waitsFor        string // the label of the metric
	after           time.Duration
}

// enter reports whether a pass may call a server. If so, the pass has to call leave. While the server cannot be reached, only one pass
// after each pause may call it: isProbe is then true.
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

// leave is called when a pass has ended its calls of a server. If the server could not be reached, trouble is the error. answered is true
// if the server gave an answer other than a request to wait.
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

// isSpared reports whether the server is not called because it could not be reached, and objects still want to call it.
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

// throttle stores that a server asks to wait, so no pass calls it until then. The caller has called enter. throttle returns the text of
// the first such request. The conditions of all waiting objects show this text. So the status need not be written if the server asks again
// with another text.
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

// take takes a token of the quota for a call, or returns when the pass should run again. A poll leaves some tokens to urgent passes. Each
// object that has to wait has one slot, which is a time, however often events trigger its passes. The slots follow each other as fast as
// the quota gives tokens. A pass that waits ends, so that it does not block a worker. If inTheMiddle is true, the pass may have many more
// calls to make, so its slot is at a time at which several tokens are there.
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

// quotaSlot says when the pass of an object that has to wait for the quota runs again.
type quotaSlot struct {
	at     time.Time
	urgent bool
}

// forget removes the slot of an object.
func (g *gate) forget(object types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.slots, object)
}

// charge takes a token even if none is left: later passes then wait longer.
func (g *gate) charge(now time.Time) {
	if g.quota != nil {
		g.quota.ReserveN(now, 1)
	}
}

// timeFor returns in which time the quota gives this number of tokens. If the quota gives none, it returns a second.
func (g *gate) timeFor(tokens float64) time.Duration {
	limit := float64(g.quota.Limit())
	if limit <= 0 {
		return time.Second
	}
	return time.Duration(min(max(tokens, 0)/limit, longestWait.Seconds()) * float64(time.Second))
}
