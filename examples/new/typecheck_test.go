//go:build !race

// Programs are run here, which the race detector does not see.

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/typecheck"
)

// assertCompiles asserts that the modules of a workspace compile, with their tests.
func assertCompiles(t *testing.T, workspace string, modules []string) {
	t.Helper()
	options := typecheck.Options{Dir: workspace, Env: []string{"GOWORK="}, Tests: true}
	for _, module := range modules {
		options.Patterns = append(options.Patterns, "./"+module+"/...")
	}
	packages, _, err := typecheck.Load(t.Context(), options)
	require.NoError(t, err)
	for _, p := range packages {
		assert.NoError(t, p.Err, p.ImportPath)
	}
}
