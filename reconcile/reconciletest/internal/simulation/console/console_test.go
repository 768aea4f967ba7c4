package console_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/console"
)

// packageLogger is a logger in a package variable, as many operators have one.
var packageLogger = ctrl.Log.WithName("operator")

var lines int // the number of printed lines

func init() {
	ctrl.SetLogger(funcr.New(func(string, string) { lines++ }, funcr.Options{}))
}

func TestQuieten(t *testing.T) {
	loggers := map[string]struct {
		reason string
		logger func() logr.Logger
	}{
		"Package": {"made when the package is initialized, before the logger is set", func() logr.Logger { return packageLogger }},
		"Global":  {"the variable itself", func() logr.Logger { return ctrl.Log }},
		"Context": {"the one of a context without any", func() logr.Logger { return log.FromContext(context.Background()) }},
		"Start":   {"made in Start, of which WithValues makes another one", func() logr.Logger { return ctrl.Log.WithName("shop").WithValues("a", 1).WithCallDepth(1) }},
	}
	for name, tc := range loggers {
		t.Run(name, func(t *testing.T) {
			count := func() int {
				lines = 0
				tc.logger().Info("a line")
				tc.logger().Error(errors.New("oh"), "a line")
				return lines
			}
			assert.Equal(t, 2, count(), tc.reason)
			one, other := console.Quieten(), console.Quieten()
			assert.Zero(t, count(), tc.reason)
			one()
			assert.Zero(t, count(), "another exploration asks for it still")
			other()
			assert.Equal(t, 2, count(), "what is logged afterwards is printed")
		})
	}
}
