package accounts

import (
	"database/sql"
	"errors"
	"sync"
	"time"
)

// The pause after a failure doubles from the first to the longest.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

// breaker spares the callers of a server that does not answer the wait for a timeout. After a failure it is open for a pause: all
// calls return the last failure at once. After the pause one call is the probe. If the server answers the probe, the breaker
// closes. Otherwise the next pause is twice as long. Each [Client] has a breaker of its own, so a server does not affect the
// others.
type breaker struct {
	now func() time.Time

	mu      sync.Mutex
	failure *UnreachableError // nil if the breaker is closed
	pause   time.Duration     // the last one
	until   time.Time         // the end of the pause
	probing bool              // a call is the probe, and has not ended
}

// call makes a call, unless the breaker is open.
func (b *breaker) call(do func() error) (err error) {
	isProbe, failure := b.enter()
	if failure != nil {
		return failure
	}
	returned := false
	defer func() { b.leave(isProbe, returned, err) }() // also if do panics: a probe always ends
	err = do()
	returned = true
	return err
}

// enter returns the last failure while the breaker is open. Otherwise it reports whether the call is the probe.
func (b *breaker) enter() (isProbe bool, failure error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failure == nil:
		return false, nil
	case b.probing || b.now().Before(b.until):
		return false, b.failure
	}
	b.probing = true
	return true, nil
}

// leave closes the breaker if the server has answered, be it by a refusal or by nothing found. It opens the breaker if the server could not be
// reached. Calls that began before the breaker opened do not make the pause longer. The end of the caller's own context says
// nothing about the server.
func (b *breaker) leave(isProbe, returned bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isProbe {
		b.probing = false
	}
	failure, isUnreachable := errors.AsType[*UnreachableError](err)
	_, isRefusal := errors.AsType[*StatementError](err)
	switch {
	case !returned:
	case err == nil, isRefusal, errors.Is(err, sql.ErrNoRows):
		b.failure, b.pause = nil, 0
	case isUnreachable && (isProbe || b.failure == nil):
		b.failure, b.pause = failure, min(max(2*b.pause, firstPause), longestPause)
		b.until = b.now().Add(b.pause)
	}
}
