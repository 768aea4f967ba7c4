package world

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

func TestFailures(t *testing.T) {
	f := newFailures(&sync.Mutex{}, []kinds.Finding{kinds.DoesNotRest})
	restless := failure.Finding{Kind: kinds.DoesNotRest, Err: errors.New("it writes on")}
	f.Add(restless)
	assert.NoError(t, f.First(), "findings of this kind are left out")
	assert.Equal(t, map[kinds.Finding]bool{kinds.DoesNotRest: true}, f.Silenced)
	assert.True(t, f.LeavesOut(kinds.DoesNotRest))
	assert.False(t, f.LeavesOut(kinds.LeaksSecret))
	f.Abort(restless)
	f.Add(errors.New("another one"))
	assert.Equal(t, restless, f.First(), "the run cannot go on after it, whatever is left out")
	assert.Equal(t, 2, f.Length())
	f.Cut(0)
	assert.NoError(t, f.First())
}
