package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestActions(t *testing.T) {
	a := &actions{all: []Action{{Name: "create"}, {Name: "wait", Wait: time.Minute}}}
	assert.True(t, a.hasNext())
	assert.Equal(t, "start", a.last())
	assert.Equal(t, "it was at the start", a.place())
	first, ok := a.next()
	assert.True(t, ok)
	assert.Equal(t, "create", first.Name)
	assert.False(t, a.hasNext(), "no fault does a Wait in the middle of a pass")
	assert.False(t, a.haveBegun())
	_, ok = a.next()
	assert.True(t, ok)
	assert.True(t, a.haveBegun())
	assert.Equal(t, `it was at action 2 of 2, "wait"`, a.place())
	_, ok = a.next()
	assert.False(t, ok)
	assert.NoError(t, a.checkThen(nil), "the scenario asks for nothing")
}
