package ownedresources

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// dryRunClient is a client whose dry runs of creations fail while failure is set.
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

// A dry run that fails for a moment says nothing of the object: the next pass asks again.
func TestDryRunThatFailsForAMoment(t *testing.T) {
	busy := apierrors.NewServiceUnavailable("a webhook is restarting")
	t.Run("fields of admission", func(t *testing.T) {
		env := admittedEnv(t)
		c := &dryRunClient{Client: env.client}
		env.client = c
		_, err := env.apply(t, env.admittedPod())
		require.NoError(t, err)
		changed := env.admittedPod()
		label(changed, "2")
		c.failure = busy
		_, err = env.apply(t, changed)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		c.failure = nil
		_, err = env.apply(t, changed)
		require.NoError(t, err)
	})
	for name, failure := range map[string]error{
		"Recreate, the webhook is restarting": busy,
		"Recreate, the quota is used up":      apierrors.NewForbidden(corev1.Resource("configmaps"), "web", errors.New("exceeded quota")),
	} {
		t.Run(name, func(t *testing.T) {
			env := newServerEnv(t)
			c := &dryRunClient{Client: env.client}
			env.client = c
			build := func(version string) *corev1.ConfigMap {
				made := NewConfigMap(env.owner, map[string]string{"version": version})
				made.Immutable = new(true)
				return made
			}
			_, err := env.apply(t, build("1"), withRecreate())
			require.NoError(t, err)
			c.failure = failure
			_, err = env.apply(t, build("2"), withRecreate())
			require.ErrorIs(t, err, failure)
			c.failure = nil
			_, err = env.apply(t, build("2"), withRecreate())
			requireWaits(t, err, apply.ReasonRecreating)
			_, err = env.apply(t, build("2"), withRecreate())
			require.NoError(t, err)
		})
	}
}
