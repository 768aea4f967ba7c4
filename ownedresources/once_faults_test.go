//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// seenValues are the values of generated keys that somebody may have used already, by the UID of the Secret.
type seenValues map[types.UID]seenSecret

type seenSecret struct {
	rotated, password, cookie string
	passwords                 int
}

func (seenValues) State() any { return nil } // what the scenario compares are the objects

// observe returns an error if a value was replaced without a rotation.
func (s seenValues) observe(secret *corev1.Secret) error {
	now := seenSecret{secret.Annotations[record.Rotated], string(secret.Data["password"]), string(secret.Data["cookie"]), 1}
	before, known := s[secret.UID]
	switch {
	case len(now.password) != 24 || len(now.cookie) != 32:
		return fmt.Errorf("values of %d and %d characters", len(now.password), len(now.cookie))
	case !known:
	case now.cookie != before.cookie:
		return errors.New("the cookie was replaced, which nobody has asked for")
	case now.password == before.password:
		now.passwords = before.passwords
	case now.rotated == before.rotated || before.passwords > 1:
		return errors.New("the password was replaced more often than somebody has asked for")
	default:
		now.passwords = before.passwords + 1
	}
	s[secret.UID] = now
	return nil
}

func TestGenerateSurvivesEveryFault(t *testing.T) {
	set := func() *ChildSet[*Shop] {
		return Ensure(Build(func(owner *Shop) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, StringData: map[string]string{"username": owner.Spec.Content}}
		}).Generate("password", 24, func(owner *Shop) string { return owner.Spec.Rotate }).Generate("cookie", 32))
	}
	secret := &corev1.Secret{ObjectMeta: newShop().ObjectMeta}
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start: startSet(set),
		Actions: []reconciletest.Action{
			reconciletest.Create(newShop(withContent("ann"))),
			changeShop(withContent("bob")),
			changeShop(func(s *ShopSpec) { s.Rotate = "1" }),
			changeShop(func(s *ShopSpec) { s.Rotate = "" }),
			reconciletest.Change(secret, func(s *corev1.Secret) { delete(s.Data, "username") }),
			reconciletest.Delete(newShop()),
		},
		External: func() reconciletest.External { return seenValues{} },
		Always: func(env *reconciletest.Env) error {
			var live corev1.Secret
			if err := env.Get(context.Background(), client.ObjectKeyFromObject(secret), &live); err != nil {
				return client.IgnoreNotFound(err)
			}
			return env.External.(seenValues).observe(&live)
		},
		Ignore: func(obj *unstructured.Unstructured) { // random values; their lengths are checked above
			for _, key := range []string{"password", "cookie"} {
				unstructured.RemoveNestedField(obj.Object, "data", key)
			}
		},
	}))
}

// failingVersion is a version whose Job fails.
const failingVersion = "failing"

func outcomeOfVersion(job *batchv1.Job) batchv1.JobConditionType {
	if imageOf(job) == "migrate:"+failingVersion {
		return batchv1.JobFailed
	}
	return batchv1.JobComplete
}

func imageOf(job *batchv1.Job) string { return job.Spec.Template.Spec.Containers[0].Image }

// TestRunOnceSurvivesEveryFault has one scenario whose Jobs stay until the next version replaces them, and others whose time
// to live is over at once.
func TestRunOnceSurvivesEveryFault(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: newShop().ObjectMeta}
	cases := map[string]struct {
		ttl     *int32
		actions []reconciletest.Action
		skipped []reconciletest.FaultKind
	}{
		"Versions": {nil, []reconciletest.Action{
			reconciletest.Create(newShop(withVersion(failingVersion))), changeShop(withVersion("2")), changeShop(withVersion("3")), reconciletest.Delete(newShop()),
		}, []reconciletest.FaultKind{"not found at"}}, // a Job that is complete, and that somebody deletes, stays deleted
		"TimeToLive": {new(int32(0)), []reconciletest.Action{
			reconciletest.Create(newShop(withVersion("2"))), reconciletest.Delete(configMap), reconciletest.Delete(newShop()),
		}, nil},
		"TimeToLiveOfAFailedJob": {new(int32(0)), []reconciletest.Action{
			reconciletest.Create(newShop(withVersion(failingVersion))), reconciletest.Wait(time.Hour), reconciletest.Delete(newShop()),
		}, nil},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := func() *ChildSet[*Shop] {
				migrate := Build(func(owner *Shop) *batchv1.Job { return migration(owner, test.ttl) }, RunOnce())
				server := Build(func(owner *Shop) *corev1.ConfigMap {
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"version": owner.Spec.Version}}
				}).After(migrate)
				return Ensure(server, migrate)
			}
			reconciletest.Explore(t, withShops(reconciletest.Scenario{
				Start: startSet(set), Actions: test.actions,
				SimulatedControllers: []reconciletest.SimulatedController{reconciletest.Jobs(outcomeOfVersion)},
				External:             func() reconciletest.External { return seenUIDs{} },
				Always:               runsOnce,
			}), reconciletest.SkipFaults(test.skipped...))
		})
	}
}

// runsOnce returns an error if a version has run twice, or if two Jobs run at once.
func runsOnce(env *reconciletest.Env) error {
	var jobs batchv1.JobList
	var pods corev1.PodList
	if err := errors.Join(env.List(context.Background(), &jobs), env.List(context.Background(), &pods)); err != nil {
		return err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if hasEnded(job) && env.External.(seenUIDs).isAnother(imageOf(job), job.UID) {
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

func hasEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}
