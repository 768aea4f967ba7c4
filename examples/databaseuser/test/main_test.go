package test

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Most of these tests wait for others' processes most of the time: more of them run at once than there are processors.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // what is logged without a logger of its own belongs to no test
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}
