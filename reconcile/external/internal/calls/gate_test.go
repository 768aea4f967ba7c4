package calls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/opblocks/opblocks/reconcile"
)

var errLost = &net.OpError{Op: "read", Err: errors.New("connection reset")}

func TestGateSparesAServer(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New(nil, 0, 0, func() time.Time { return now })
	enter := func(server string, answer error) string {
		v := &Visit{calls: c, server: server, urgent: true}
		if err := v.enter(); err != nil {
			waiter, _ := errors.AsType[reconcile.Waiter](err)
			reason, _ := waiter.Waiting()
			return reason
		}
		defer v.leave()
		_ = v.note(answer, false)
		return ""
	}
	require.Empty(t, enter("a", errLost))
	require.Equal(t, ReasonUnreachable, enter("a", nil))
	require.Empty(t, enter("b", nil), "another server is not spared")
	for _, pause := range []time.Duration{1, 2, 4, 8, 15, 15} {
		now = now.Add(pause*time.Second - 1)
		require.Equal(t, ReasonUnreachable, enter("a", nil), "the pause is %d s", pause)
		now = now.Add(1)
		require.Empty(t, enter("a", errLost), "one pass looks")
	}
	now = now.Add(longestPause)
	require.Empty(t, enter("a", ErrNotFound), "that is an answer")
	require.Empty(t, enter("a", Throttled(time.Minute, errors.New("429"))))
	require.Equal(t, ReasonRateLimited, enter("a", nil), "all obey it")
	require.Empty(t, enter("b", nil))
	now = now.Add(time.Minute)
	require.Empty(t, enter("a", nil))
	require.Empty(t, c.gate.servers, "nothing is remembered of servers that answer")
}

// All objects that wait for one server show the same message, even if an object gets another error from that server. Otherwise each new
// error would change the status of all waiting objects.
func TestGateKeepsItsWords(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New(nil, 0, 0, func() time.Time { return now })
	says := func(answer error) string {
		v := &Visit{calls: c, server: "a", urgent: true}
		err := v.enter()
		if err == nil {
			defer v.leave()
			err = v.note(answer, false)
		}
		if err == nil {
			return ""
		}
		return err.Error()
	}
	const asks = "the API asks to wait: alice: 429"
	for range 3 {
		require.Equal(t, asks, says(Throttled(time.Second, errors.New("alice: 429"))))
		require.Equal(t, asks, says(nil), "it is denied")
		now = now.Add(time.Second)
		require.Equal(t, asks, says(fmt.Errorf("update bob: %w", Throttled(time.Second, errors.New("bob: 429")))))
		now = now.Add(time.Second)
	}
	require.Empty(t, says(nil))
	require.Equal(t, "the API asks to wait: bob: 429", says(Throttled(time.Second, errors.New("bob: 429"))), "the server has answered in between")
	now = now.Add(time.Second)
	require.Empty(t, says(nil))

	lost := func(name string, port int) error {
		local, remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 443}
		broken := &net.OpError{Op: "read", Net: "tcp", Source: local, Addr: remote, Err: errors.New("connection reset")}
		return fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: "https://queue/topics/" + name + "?token=s3cr3t", Err: broken})
	}
	const away = "get: read tcp 10.0.0.2:443: connection reset"
	for i, name := range []string{"alice", "bob", "carol"} {
		require.Equal(t, away, says(lost(name, 40000+i)))
		require.Equal(t, away, says(nil), "it is denied")
		now = now.Add(longestPause)
	}
	require.Contains(t, says(Throttled(time.Second, errors.New("dan: 429"))), "dan: 429", "it can be reached")
	now = now.Add(time.Second)
	require.Empty(t, says(nil))
	require.Empty(t, c.gate.servers)
	err := withoutNames(lost("alice", 1))
	var sent *url.Error
	require.ErrorAs(t, err, &sent, "what it wraps is found")
}

func TestGateLetsOneProbeIn(t *testing.T) {
	now := time.Now()
	g := &gate{concurrency: 2}
	_, denied := g.enter(now, "a")
	require.Nil(t, denied)
	_, denied = g.enter(now, "a")
	require.Nil(t, denied)
	_, denied = g.enter(now, "a")
	require.Equal(t, ReasonBusy, denied.reason)
	g.leave(now, "a", false, false, errLost)
	g.leave(now, "a", false, false, errLost)
	now = now.Add(firstPause)
	isProbe, denied := g.enter(now, "a")
	require.Nil(t, denied)
	require.True(t, isProbe, "failures of passes that began before did not make the pause longer")
	_, denied = g.enter(now, "a")
	require.Equal(t, ReasonUnreachable, denied.reason, "one pass is enough to look")
	g.leave(now, "a", isProbe, false, nil)
	isProbe, _ = g.enter(now, "a")
	require.True(t, isProbe, "a probe that ended without any answer, such as by a panic, is followed by another one")
}

// TestQuota polls 10,000 objects for ten minutes with a quota of 50 calls a second. Every 7 seconds a person changes one
// object.
func TestQuota(t *testing.T) {
	const objects, limit, burst, changed = 10_000, 50, 50, -1
	synctest.Test(t, func(t *testing.T) {
		c := New(rate.NewLimiter(limit, burst), 0, 0, time.Now)
		queue := workqueue.NewTypedDelayingQueue[int]()
		var mu sync.Mutex
		polls, calls := make([]int, objects), make([]int, 610) // calls in each second
		var changedAt time.Time
		begin, served := time.Now(), 0
		pass := func(ctx context.Context, object int) {
			v := &Visit{calls: c, object: types.NamespacedName{Name: strconv.Itoa(object)}, urgent: object == changed}
			require.NoError(t, v.enter())
			defer v.leave()
			if err := v.Next(ctx, true); err != nil {
				waiter, ok := errors.AsType[reconcile.Waiter](err)
				require.True(t, ok)
				_, after := waiter.Waiting()
				queue.AddAfter(object, after)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			calls[int(time.Since(begin)/time.Second)]++
			if object == changed {
				served++
				require.Less(t, time.Since(changedAt), time.Second, "what a person has changed comes first")
				return
			}
			polls[object]++
			queue.AddAfter(object, 5*time.Minute)
		}
		for range 4 {
			go func() {
				for {
					object, stopped := queue.Get()
					if stopped {
						return
					}
					pass(t.Context(), object)
					queue.Done(object)
				}
			}()
		}
		for object := range objects {
			queue.Add(object)
		}
		for time.Since(begin) < 10*time.Minute-time.Second {
			time.Sleep(7 * time.Second)
			mu.Lock()
			changedAt = time.Now()
			mu.Unlock()
			queue.Add(changed)
		}
		synctest.Wait()
		queue.ShutDown()
		synctest.Wait()
		total := 0
		for second, n := range calls {
			require.LessOrEqual(t, n, limit+burst, "second %d", second)
			total += n
		}
		require.LessOrEqual(t, total, limit*602+burst)
		require.Equal(t, 86, served)
		for object, n := range polls {
			require.GreaterOrEqual(t, n, 2, "object %d is not starved", object)
		}
	})
}

// TestQuotaOfManyObjects: a person has changed 2,000 objects at once. Each object needs one call, and events trigger its pass
// twice.
func TestQuotaOfManyObjects(t *testing.T) {
	const objects, limit, burst = 2000, 10, 10
	type request struct {
		at     time.Time
		object int
	}
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	g, now := &gate{quota: rate.NewLimiter(limit, burst)}, begin
	var waiting []request
	for object := range objects {
		waiting = append(waiting, request{now, object}, request{now, object})
	}
	served := map[int]bool{}
	for len(waiting) > 0 {
		slices.SortStableFunc(waiting, func(a, b request) int { return a.at.Compare(b.at) })
		next := waiting[0]
		waiting = waiting[1:]
		if now = later(now, next.at); served[next.object] {
			continue
		}
		if denied := g.take(now, types.NamespacedName{Name: strconv.Itoa(next.object)}, true, false); denied != nil {
			waiting = append(waiting, request{now.Add(denied.after), next.object})
			continue
		}
		served[next.object] = true
	}
	require.LessOrEqual(t, now.Sub(begin), (objects/limit+2)*time.Second, "the quota is used")
	require.Empty(t, g.slots, "nothing is remembered of objects that do not wait")
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// TestGateForgetsServers: servers could not be reached, and then the last objects of these servers were deleted.
func TestGateForgetsServers(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New(nil, 0, 0, func() time.Time { return now })
	fail := func(server string, answer error) {
		v := &Visit{calls: c, server: server, urgent: true}
		require.NoError(t, v.enter())
		_ = v.note(answer, false)
		v.leave()
	}
	fail("a", errLost)
	fail("b", Throttled(time.Hour, errors.New("429")))
	now = now.Add(firstPause + forgottenAfter)
	fail("c", errLost)
	require.Len(t, c.gate.servers, 2, "a is forgotten, and b has asked to wait for longer")
	now = now.Add(time.Hour)
	fail("d", nil)
	require.Empty(t, c.gate.servers)
}

// TestGateLearnsNothing: a pass tries a server that could not be reached, and learns nothing about the server. The
// server is still not called by others.
func TestGateLearnsNothing(t *testing.T) {
	for name, err := range map[string]error{"a panic": &panicError{errors.New("boom")}, "the end of the operator": context.Canceled} {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		c := New(nil, 0, 0, func() time.Time { return now })
		visit := func(answer error) {
			v := &Visit{calls: c, server: "a", urgent: true}
			require.NoError(t, v.enter())
			_ = v.note(answer, false)
			v.leave()
		}
		visit(errLost)
		now = now.Add(firstPause)
		visit(err)
		require.Equal(t, 1, c.gate.spared(now), name)
		visit(ErrNotFound)
		require.Zero(t, c.gate.spared(now), name)
	}
}
