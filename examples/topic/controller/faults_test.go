//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	queuev1alpha1 "github.com/opblocks/opblocks/examples/topic/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/topic/queue/queuetest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestSurvivesEveryFault runs a scenario that covers everything that the operator reacts to, once for every fault at every point: at each
// request to the API server, and at each one to the queue server. What the operator asks the API server for is compared with its role.
func TestSurvivesEveryFault(t *testing.T) {
	report := reconciletest.Explore(t, scenario(t, reconciletest.Options{Pairs: 20},
		reconciletest.Create(sample(3)).Then(has()).Then(shows("SecretNotFound")),
		reconciletest.Create(secret("a mistake")).Then(has()).Then(shows("InvalidToken")),
		reconciletest.Change(secret(""), func(s *corev1.Secret) { s.Data["token"] = []byte(queuetest.Token + "\n") }).Then(has(3)),
		edit(func(s *queuev1alpha1.TopicSpec) { s.Partitions = 6 }).Then(has(6)),
		reconciletest.Delete(sample(0)).Then(has()),
	))
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", []*reconciletest.Report{report})
}
