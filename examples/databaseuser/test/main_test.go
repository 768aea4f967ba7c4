// Package test runs the databaseuser operator on a real control plane and a real MariaDB.
package test

import (
	"testing"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// releaseBuilt releases the folder with the operator's program, if a test has built it.
var releaseBuilt = func() {}

func TestMain(m *testing.M) { operatortest.Main(m, func() { releaseBuilt() }) }
