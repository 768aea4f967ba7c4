package operatortest

import (
	"sync"
	"testing"
)

// log shows what an operator logs with the test that it belongs to, for as long as the operator is at work. Client-go's
// event broadcaster may have something to say afterwards, when the test has ended.
type log struct {
	t     testing.TB
	mu    sync.Mutex
	ended bool
}

// Helper does nothing: it may be called when the test has ended.
func (l *log) Helper() {}

func (l *log) Log(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.t.Log(args...)
	}
}

func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
