//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/heldjob"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// These versions have Jobs that do not complete.
const (
	failingVersion = "failing"
	endlessVersion = "endless"
)

func outcomeOfVersion(job *batchv1.Job) batchv1.JobConditionType {
	switch imageOf(job) {
	case "migrate:" + failingVersion:
		return batchv1.JobFailed
	case "migrate:" + endlessVersion:
		return ""
	}
	return batchv1.JobComplete
}

func imageOf(job *batchv1.Job) string { return job.Spec.Template.Spec.Containers[0].Image }

// TestRunOnceSurvivesEveryFault has several scenarios. In two, a Job that has failed or completed stays until the next version replaces it.
// In another one, a Job is replaced while it runs. In the others, the Job is deleted as soon as it ends. There the faults at the creation of
// a Job are tried.
func TestRunOnceSurvivesEveryFault(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: newShop().ObjectMeta}
	cases := map[string]struct {
		ttl     *int32
		actions []reconciletest.Action
	}{
		"Failed": {nil, []reconciletest.Action{
			reconciletest.Create(newShop(withVersion(failingVersion))).WithoutFaults(), changeShop(withVersion("2")), reconciletest.Delete(newShop()),
		}},
		"Complete": {nil, []reconciletest.Action{
			reconciletest.Create(newShop(withVersion("2"))).WithoutFaults(), changeShop(withVersion("3")),
		}},
		"Running": {nil, []reconciletest.Action{
			reconciletest.Create(newShop(withVersion(endlessVersion))), changeShop(withVersion("2")), reconciletest.Delete(newShop()),
		}},
		"TimeToLive": {new(int32(0)), []reconciletest.Action{
			reconciletest.Create(newShop(withVersion("2"))), reconciletest.Delete(configMap), reconciletest.Delete(newShop()),
		}},
		"TimeToLiveOfAFailedJob": {new(int32(0)), []reconciletest.Action{
			reconciletest.Create(newShop(withVersion(failingVersion))), reconciletest.Wait(time.Hour), reconciletest.Delete(newShop()),
		}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := func() *ChildSet[*Shop] {
				migrate := Build(func(owner *Shop) *batchv1.Job { return migration(owner, test.ttl) }).RunOnce()
				server := Build(func(owner *Shop) *corev1.ConfigMap {
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"version": owner.Spec.Version}}
				}).After(migrate)
				return Ensure(server, migrate)
			}
			s := withShops(reconciletest.Scenario{
				Start: startSet(set), Actions: test.actions,
				SimulatedControllers: []reconciletest.SimulatedController{reconciletest.Jobs(outcomeOfVersion)},
				External:             func() reconciletest.External { return seenUIDs{} },
				Always:               runsOnce,
			})
			if name == "TimeToLiveOfAFailedJob" {
				s.Unready = []reconciletest.Unready{{Object: newShop(), Reason: "JobFailed"}}
			}
			reconciletest.Explore(t, s)
		})
	}
}

// runsOnce returns an error if a version has run twice, or if two Jobs run at the same time.
func runsOnce(env *reconciletest.Env) error {
	var jobs batchv1.JobList
	var pods corev1.PodList
	if err := errors.Join(env.List(context.Background(), &jobs), env.List(context.Background(), &pods)); err != nil {
		return err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if heldjob.End(job) != nil && env.External.(seenUIDs).isAnother(imageOf(job), job.UID) {
			return fmt.Errorf("%s has run twice", imageOf(job))
		}
	}
	running := ""
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case running != "":
			return fmt.Errorf("two runs at once: %s and %s", running, pod.Name)
		default:
			running = pod.Name
		}
	}
	return nil
}
