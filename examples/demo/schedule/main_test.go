package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/examples/demo/style"
)

// TestRun checks that all is as the chapter says.
func TestRun(t *testing.T) {
	assert.NoError(t, run(style.New()))
}
