package test

import (
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// What is logged without a logger of its own belongs to no test.
func init() { ctrl.SetLogger(logr.Discard()) }
