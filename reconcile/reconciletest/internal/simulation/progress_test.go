package simulation

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
)

// lines keeps what was printed.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var printed lines
		p := &Progress{Output: &printed, First: 10 * time.Second, Every: 10 * time.Second}
		stop := p.start("TestX")
		time.Sleep(12*time.Second + 5*time.Millisecond) // the runs without faults

		p.plan(4310)
		for range 1200 {
			end := p.begin(nil)
			time.Sleep(10 * time.Millisecond)
			end()
		}
		end := p.begin([]plan.Fault{{Kind: kinds.CrashAfter, At: "create Shop a", Nth: 1}})
		time.Sleep(21 * time.Second)
		end()
		p.plan(100) // pairs
		time.Sleep(10 * time.Second)
		stop()
		time.Sleep(time.Minute)
		assert.Equal(t, ""+
			"reconciletest: TestX: the runs without faults, 10 s\n"+
			"reconciletest: TestX: 799 of 4,310 runs, 20 s, about 35 s left\n"+
			"reconciletest: TestX: 1,200 of 4,310 runs, 30 s, about 47 s left\n"+
			"reconciletest: TestX: 1,200 of 4,310 runs, 40 s, about 73 s left; one takes 16 s so far: crash after: create Shop a #1\n"+
			"reconciletest: TestX: 1,201 of 4,410 runs, 50 s, about 102 s left\n", printed.text.String())
	})
}

// A test that ends soon prints nothing. A nil Progress never prints anything.
func TestProgressIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var printed lines
		for _, p := range []*Progress{nil, {Output: &printed, First: 10 * time.Second, Every: 10 * time.Second}} {
			stop := p.start("TestX")
			p.plan(1)
			p.begin(nil)()
			time.Sleep(9 * time.Second)
			stop()
			assert.Empty(t, printed.text.String())
		}
	})
}

func TestSeconds(t *testing.T) {
	assert.Equal(t, "0 s", seconds(time.Millisecond))
	assert.Equal(t, "31 s", seconds(30*time.Second+600*time.Millisecond))
	assert.Equal(t, "2 m 05 s", seconds(125*time.Second))
}

func TestThousands(t *testing.T) {
	assert.Equal(t, "0", thousands(0))
	assert.Equal(t, "999", thousands(999))
	assert.Equal(t, "4,310", thousands(4310))
	assert.Equal(t, "1,234,567", thousands(1234567))
}
