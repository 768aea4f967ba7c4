//go:build !race

// TestHundredDue runs the same with the race detector, with which this one would take eight times as long.

package test

import "testing"

func TestThousandDue(t *testing.T) { testManyDue(t, 1000, 25) }
