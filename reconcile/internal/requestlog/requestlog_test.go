package requestlog

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

// client-go takes its logger from the context, and increases the call depth of the logger.
func TestInContext(t *testing.T) {
	var lines []string
	l := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 10})
	ctx := InContext(InContext(logr.NewContext(t.Context(), l.WithName("shop"))))
	for level := range 11 {
		got := logr.FromContextOrDiscard(ctx).WithValues("controller", "shop").WithName("web").WithCallDepth(2).V(level)
		require.Equal(t, level < bodies, got.Enabled(), "level %d", level)
		got.Info("a line")
	}
	require.Len(t, lines, bodies)
	require.True(t, logr.FromContextOrDiscard(ctx).V(3).V(4).Enabled())
	require.False(t, logr.FromContextOrDiscard(ctx).V(4).V(4).Enabled(), "levels add up")
}

func TestInContextThatLogsLess(t *testing.T) {
	ctx := logr.NewContext(t.Context(), logr.Discard())
	require.Equal(t, ctx, InContext(ctx))
	require.Equal(t, t.Context(), InContext(t.Context()), "it has no logger")
	require.Equal(t, logr.Logger{}, WithoutBodies(logr.Logger{}))
}
