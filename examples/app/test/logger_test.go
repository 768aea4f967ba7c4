package test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// What is logged without a logger of its own belongs to no test.
func init() { ctrl.SetLogger(logr.Discard()) }

// operatorLogger shows what the operator logs with the test that it belongs to.
func operatorLogger(t *testing.T) logr.Logger {
	return testr.NewWithOptions(t, testr.Options{LogTimestamp: true})
}
