package accounts_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// dialled is a client that counts the connections that it tries to open. Each fails, or does what the test has set.
type dialled struct {
	*accounts.Client
	now   atomic.Pointer[time.Time]
	count atomic.Int32
	open  atomic.Pointer[func() error]
}

var errNoFile = errors.New("no file")

func dial(t *testing.T) *dialled {
	t.Helper()
	d := &dialled{}
	d.now.Store(new(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
	var err error
	d.Client, err = accounts.New(accounts.Options{
		Address: "127.0.0.1:1", User: "operator", Now: func() time.Time { return *d.now.Load() },
		Timeout: 5 * time.Minute, ConnectTimeout: 5 * time.Minute, // the machine may be busy
		Password: func() (string, error) {
			d.count.Add(1)
			if open := d.open.Load(); open != nil {
				return "", (*open)()
			}
			return "", errNoFile
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func (d *dialled) wait(w time.Duration) { d.now.Store(new(d.now.Load().Add(w))) }

// TestBreakerPauses checks that a server that cannot be reached is asked once, and then once after each pause.
func TestBreakerPauses(t *testing.T) {
	d, other := dial(t), dial(t)
	ask := func() {
		t.Helper()
		for range 20 {
			_, err := d.Lookup(t.Context(), bob)
			assert.EqualError(t, err, "the database at 127.0.0.1:1 cannot be reached: no file", "the same words while it is not asked")
			_, ok := errors.AsType[*accounts.UnreachableError](d.Drop(t.Context(), bob))
			assert.True(t, ok)
		}
	}
	ask()
	assert.EqualValues(t, 1, d.count.Load(), "all other calls return at once")
	for i, pause := range []time.Duration{1, 2, 4, 8, 15, 15, 15} {
		d.wait(pause*time.Second - time.Millisecond)
		ask()
		assert.EqualValues(t, 1+i, d.count.Load(), "during pause %d", i)
		d.wait(time.Millisecond)
		ask()
		assert.EqualValues(t, 2+i, d.count.Load(), "after pause %d", i)
	}
	assert.Zero(t, other.count.Load())
	assert.Error(t, other.Drop(t.Context(), bob))
	assert.EqualValues(t, 1, other.count.Load(), "each server has a breaker of its own")
}

// TestBreakerProbe checks that one call at a time is the probe, and that a probe that says nothing about the server is followed
// by another one.
func TestBreakerProbe(t *testing.T) {
	d := dial(t)
	require.Error(t, d.Drop(t.Context(), bob))
	d.wait(time.Second)
	entered, release := make(chan struct{}), make(chan struct{})
	d.open.Store(new(func() error {
		close(entered)
		<-release
		return errNoFile
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("shutting down")
	done := make(chan error)
	go func() { done <- d.Drop(ctx, bob) }()
	<-entered
	for range 20 {
		assert.ErrorContains(t, d.Drop(t.Context(), bob), "cannot be reached: no file", "it does not wait for the probe")
	}
	cancel(stopped)
	close(release)
	assert.ErrorIs(t, <-done, stopped)
	assert.EqualValues(t, 2, d.count.Load())

	d.open.Store(nil)
	require.Error(t, d.Drop(t.Context(), bob))
	assert.EqualValues(t, 3, d.count.Load(), "the next call is the probe")
	require.Error(t, d.Drop(t.Context(), bob))
	assert.EqualValues(t, 3, d.count.Load())
}

// TestBreakerStragglers checks that calls that began before the breaker opened do not make the pause longer.
func TestBreakerStragglers(t *testing.T) {
	d := dial(t)
	const calls = 4
	var entered sync.WaitGroup
	entered.Add(calls)
	release := make(chan struct{})
	d.open.Store(new(func() error {
		entered.Done()
		<-release
		return errNoFile
	}))
	var done sync.WaitGroup
	for range calls {
		done.Go(func() { assert.Error(t, d.Drop(t.Context(), bob)) })
	}
	entered.Wait()
	close(release)
	done.Wait()
	d.open.Store(nil)
	d.wait(time.Second)
	require.Error(t, d.Drop(t.Context(), bob))
	assert.EqualValues(t, calls+1, d.count.Load(), "the pause is a second, and not eight")
}

// TestBreakerCloses checks that an answer of the server closes the breaker, also a refusal.
func TestBreakerCloses(t *testing.T) {
	s := startServer(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := connect(t, s, func(o *accounts.Options) { o.Now = func() time.Time { return now } })
	for _, answer := range []func() error{
		func() error { _, err := c.Lookup(t.Context(), bob); return err },
		func() error {
			if err := c.SetPassword(t.Context(), bob, "secret"); !errors.Is(err, accounts.ErrNotFound) {
				return errors.Join(errors.New("it is not refused"), err)
			}
			return nil
		},
	} {
		require.NoError(t, s.Down())
		require.Error(t, c.Ping(t.Context()))
		require.NoError(t, s.Up(t.Context()))
		assert.Error(t, answer(), "not yet")
		now = now.Add(time.Second)
		require.NoError(t, answer())
		require.NoError(t, answer(), "it is closed")
	}
	require.NoError(t, s.Down())
	require.Error(t, c.Ping(t.Context()))
	require.NoError(t, s.Up(t.Context()))
	now = now.Add(time.Second)
	require.NoError(t, c.Ping(t.Context()), "the first pause is short again")
}

// TestNoGreeting has a server that accepts connections and sends nothing. Connecting has a timeout of its own.
func TestNoGreeting(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() // nobody accepts; the kernel does
	c, err := accounts.New(accounts.Options{
		Address: listener.Addr().String(), User: "operator", Password: func() (string, error) { return "", nil },
		Timeout: time.Hour, ConnectTimeout: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	defer c.Close()
	assert.ErrorContains(t, c.Drop(t.Context(), bob), "cannot be reached: no answer within 50ms")
}
