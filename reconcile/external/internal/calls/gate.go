package calls

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// The pause after a server could not be reached doubles from the first to the longest.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

const (
	// longestWait is the longest delay until a token is there. If the quota gives a token less often, the pass asks again after this delay.
	longestWait = time.Minute
	// forgottenAfter is how long after the end of its pause a server is forgotten that nobody calls any more.
	forgottenAfter = 5 * time.Minute
	// sweepEvery is the time between two searches for servers that nobody calls any more.
	sweepEvery = time.Minute
	// busyDelay is the delay after which a pass comes again that met too many others at its server.
	busyDelay = time.Second
)

// gate decides which passes may call the API now. It holds the state of the servers that are called, cannot be reached or have asked to
// wait, and forgets each one when it is none of these, or when nobody has called it for a while.
type gate struct {
	quota       *rate.Limiter // nil: no limit
	concurrency int           // for each server; 0: no limit

	mu       sync.Mutex
	servers  map[string]*server
	swept    time.Time // when servers that nobody calls were last looked for
	nextPoll time.Time // when the last poll that was put off comes again

	nextUrgent time.Time // when the last other pass that was put off comes again
	slots      map[types.NamespacedName]quotaSlot
}

// server is the state of a server.
type server struct {
	passes  int           // that call it now
	until   time.Time     // it has asked to wait until then
	asks    string        // the words in which it has asked first, if it has given no other answer since
	failure error         // why it cannot be reached; nil if it can
	pause   time.Duration // the last one
	opens   time.Time     // when the pause ends
	probing bool          // a pass looks whether it can be reached again
}

// denial says why a pass may not call the API now, and when it should come again.
type denial struct {
	reason, message string
	waitsFor        string // the label of the metric
	after           time.Duration
}

// enter admits a pass to a server. An admitted pass has to call leave. While the server cannot be reached, one pass after each pause is
// admitted, and all others are denied.
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

// leave ends a pass. trouble is the error that says that the server could not be reached, or nil. answered is whether it gave an answer other
// than that it asks to wait.
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

// isSpared reports whether calls of the server are held back: it could not be reached, and objects still want to call it.
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

// spared returns the number of servers that are spared since they could not be reached.
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

// throttle closes a server for all, since it asks to wait. The caller has entered. It returns the words in which the server has asked first.
// The conditions of all objects that wait have these words. If a pass is told the same once more in other words, it need not write a status.
func (g *gate) throttle(now time.Time, name string, throttled *throttledError) (words string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.servers[name]
	if now.Add(throttled.after).After(s.until) {
		s.until = now.Add(throttled.after)
	}
	s.failure, s.pause = nil, 0 // it can be reached
	s.asks = cmp.Or(s.asks, throttled.Error())
	return s.asks
}

// take takes a token of the quota, or says when the pass should come again. A poll leaves a part of the tokens, so that a pass that is urgent
// finds one. Passes that are put off come again one after the other, as fast as the quota allows: each object has one slot, however often events
// make it ask. None of them holds a worker while it waits. A pass in the middle of its work, which may have many more calls to make, comes again
// when there are several tokens.
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

// quotaSlot is when an object comes again that was put off.
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

// charge takes a token that may not be there yet: later passes wait for it.
func (g *gate) charge(now time.Time) {
	if g.quota != nil {
		g.quota.ReserveN(now, 1)
	}
}

// timeFor returns the time in which the quota gives a number of tokens, and a second if it gives none.
func (g *gate) timeFor(tokens float64) time.Duration {
	limit := float64(g.quota.Limit())
	if limit <= 0 {
		return time.Second
	}
	return time.Duration(min(max(tokens, 0)/limit, longestWait.Seconds()) * float64(time.Second))
}
