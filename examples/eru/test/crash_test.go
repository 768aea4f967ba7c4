package test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestCrashBetweenRestartAndStatus ends the operator between the restart and the write of the status, while the Deployment
// controller rolls out: there is one rollout, and the next operator records its result.
func TestCrashBetweenRestartAndStatus(t *testing.T) {
	u := newUser(t, cluster(t))
	u.deploy(t, "web", false)
	operatortest.Eventually(t, "it has rolled out", func(c *assert.CollectT) {
		assert.EqualValues(c, 2, operatortest.Live(c, u, u.Deployment("web")).Status.AvailableReplicas)
	})
	var restarts atomic.Int32
	crashed := make(chan struct{})
	dying := operatortest.Intercept(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if restarts.Load() > 0 {
				return context.Canceled // the operator has crashed: it writes nothing any more, also if the next restart is due
			}
			err := c.Patch(ctx, obj, patch, opts...)
			if obj.GetName() == "web" && err == nil && restarts.Add(1) == 1 {
				close(crashed)
			}
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			select {
			case <-crashed:
				return context.Canceled // the operator has crashed: it writes nothing any more
			default:
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			}
		},
	})
	o := startOperator(t, realTime, u.ControlPlane.Config(), ctrl.Options{NewClient: dying}, u.Namespace)
	eru := u.create(t, "nightly", enabled("web", "@every 4s"))
	<-crashed
	o.Stop()
	due := u.restartedAt(t, "web")
	operatortest.Live(t, u, eru)
	require.Nil(t, eru.Status.LastRestartTime, "it was not recorded")

	// The clock of the next operator is set to the same due time, as if it had started at once.
	now, err := time.Parse(time.RFC3339, due)
	require.NoError(t, err)
	startOperator(t, restartsAt(now.Add(time.Second)), u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	eru = u.becomes(t, "nightly", restarted)
	assert.True(t, eru.Status.LastScheduleTime.Time.Equal(now))
	assert.Equal(t, due, u.restartedAt(t, "web"))
	assert.Equal(t, 2, u.rollouts(t, "web"), "the first one, and that of one restart")
	assert.EqualValues(t, 1, restarts.Load())
}

func restartsAt(now time.Time) restarts.Restarts {
	return restarts.Restarts{Clock: stopped{clock.RealClock{}, now}}
}

// stopped is a clock that shows always the same time.
type stopped struct {
	clock.RealClock
	now time.Time
}

func (s stopped) Now() time.Time                  { return s.now }
func (s stopped) Since(t time.Time) time.Duration { return s.now.Sub(t) }

// TestTwoOperators runs two operators, as when an old leader continues for a moment after the new one has started.
func TestTwoOperators(t *testing.T) {
	u := newUser(t, apiServer(t))
	r, clock := stepped()
	u.rolledOut(t, "web", false)
	one := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	two := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	eru := u.create(t, "web", enabled("web", "0 4 * * *"))
	u.becomes(t, "web", scheduled)
	for day := range 5 {
		generation := operatortest.Live(t, u, u.Deployment("web")).Generation
		clock.SetTime(four.Add(time.Duration(day) * 24 * time.Hour))
		one.Pass(t, u, eru)
		two.Pass(t, u, eru)
		assert.Equal(t, generation+1, operatortest.Live(t, u, u.Deployment("web")).Generation, "one restart")
		u.rollOut(t, "web")
		operatortest.Eventually(t, "its end is recorded", func(c *assert.CollectT) {
			assert.Equal(c, eruv1.RolloutComplete, operatortest.Live(c, u, eru).Status.LastRolloutResult)
		})
	}
	assert.Len(t, operatortest.Live(t, u, eru).Status.Conditions, 6, "each has one condition")
}
