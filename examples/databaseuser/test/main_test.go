// Package test runs the databaseuser operator on a real control plane and a real MariaDB.
package test

import (
	"os"
	"testing"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// built is the folder with the operator's program, if a test has built it.
var built string

func TestMain(m *testing.M) { operatortest.Main(m, func() { os.RemoveAll(built) }) }
