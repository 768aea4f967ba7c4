// Package test runs the databaseuser operator on a real control plane and a real MariaDB.
package test

import (
	"testing"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

func TestMain(m *testing.M) { operatortest.Main(m) }
