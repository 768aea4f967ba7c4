package apply_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// dryRunClient is a client. While failure is set, dry runs of creations fail with it.
type dryRunClient struct {
	client.Client
	failure error
}

func (c *dryRunClient) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	create := client.CreateOptions{}
	create.ApplyOptions(options)
	if len(create.DryRun) > 0 && c.failure != nil {
		return c.failure
	}
	return c.Client.Create(ctx, obj, options...)
}

// If a dry run fails for a temporary reason, nothing is known of the object. The next reconcile sends the dry run again.
func TestDryRunThatFailsForAMoment(t *testing.T) {
	busy := apierrors.NewServiceUnavailable("a webhook is restarting")
	t.Run("fields of admission", func(t *testing.T) {
		env := admittedEnv(t)
		c := &dryRunClient{Client: env.Client}
		env.Client = c
		env.MustApply(t, admittedPod(env))
		changed := admittedPod(env)
		label(changed, "2")
		c.failure = busy
		_, err := env.Apply(t, changed)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		c.failure = nil
		env.MustApply(t, changed)
	})
	for name, failure := range map[string]error{
		"Recreate, the webhook is restarting": busy,
		"Recreate, the quota is used up":      apierrors.NewForbidden(corev1.Resource("configmaps"), "web", errors.New("exceeded quota")),
	} {
		t.Run(name, func(t *testing.T) {
			env := newServer(t)
			c := &dryRunClient{Client: env.Client}
			env.Client = c
			build := func(version string) *corev1.ConfigMap {
				made := &corev1.ConfigMap{ObjectMeta: env.Meta(), Data: map[string]string{"version": version}, Immutable: new(true)}
				return made
			}
			env.MustApply(t, build("1"), withRecreate())
			c.failure = failure
			_, err := env.Apply(t, build("2"), withRecreate())
			require.ErrorIs(t, err, failure)
			c.failure = nil
			_, err = env.Apply(t, build("2"), withRecreate())
			ownedtest.RequireWaits(t, err, apply.ReasonRecreating)
			env.MustApply(t, build("2"), withRecreate())
		})
	}
}
