package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A function that copies the owner's annotations into a pod template sees no annotation that the Job itself causes.
func TestRecordsAreHiddenFromTheFunctions(t *testing.T) {
	env := newTestEnv(t)
	env.owner.Annotations = map[string]string{"example.com/team": "shop"}
	require.NoError(t, env.other.Update(t.Context(), env.owner))
	job := Build(func(owner *configMap) *batchv1.Job {
		job := webJob()
		job.Spec.Template.Annotations = owner.Annotations
		return job
	}, RunOnce())
	var seen []map[string]string
	after := BuildFrom(Live[*batchv1.Job](job), func(owner *configMap, _ *batchv1.Job) (*configMap, error) {
		seen = append(seen, owner.Annotations)
		return nil, nil
	})
	s := Ensure(job, after)
	var first types.UID
	for range 3 {
		requireWaits(t, s.Reconcile(t.Context(), env.client, env.owner), "JobRunning")
		env.rereadOwner(t)
		require.Contains(t, env.owner.Annotations, RunOncePrefix+"web")
		var live batchv1.Job
		env.live(t, &live)
		require.Nil(t, live.DeletionTimestamp, "its content is the same")
		if first == "" {
			first = live.UID
		}
		require.Equal(t, first, live.UID)
		require.Equal(t, map[string]string{"example.com/team": "shop"}, seen[len(seen)-1])
	}
}
