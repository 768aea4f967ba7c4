// Package test runs the topic operator on a real control plane.
package test

import (
	"testing"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

func TestMain(m *testing.M) { operatortest.Main(m) }
