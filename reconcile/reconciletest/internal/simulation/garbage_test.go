package simulation

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCollectLess(t *testing.T) {
	percent := func() int {
		is := debug.SetGCPercent(-1)
		debug.SetGCPercent(is)
		return is
	}
	t.Setenv("GOGC", "")
	before := percent()
	restoreFirst := collectLess()
	restoreSecond := collectLess()
	assert.Equal(t, garbagePercent, percent())
	restoreFirst()
	assert.Equal(t, garbagePercent, percent(), "another exploration still runs")
	restoreSecond()
	assert.Equal(t, before, percent())

	t.Setenv("GOGC", "100")
	defer collectLess()()
	assert.Equal(t, before, percent(), "the user has chosen")
}
