//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
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

// failingVersion is the version of a shop whose Job fails.
const failingVersion = "failing"

// jobs is a controller of Jobs. A Job runs one pod, and ends in the controller's next step. Then its time to live is over.
func jobs(ctx context.Context, c client.Client) error {
	var all batchv1.JobList
	var pods corev1.PodList
	if err := errors.Join(c.List(ctx, &all), c.List(ctx, &pods)); err != nil {
		return err
	}
	for i := range pods.Items { // another writer deletes Jobs as kubectl did once: their pods stay
		if len(pods.Items[i].OwnerReferences) == 0 {
			return c.Delete(ctx, &pods.Items[i])
		}
	}
	for i := range all.Items {
		if err := runJob(ctx, c, &all.Items[i]); err != nil {
			return fmt.Errorf("run Job %s: %w", all.Items[i].Name, err)
		}
	}
	return nil
}

func runJob(ctx context.Context, c client.Client, job *batchv1.Job) error {
	switch {
	case job.DeletionTimestamp != nil:
		return nil
	case len(job.Status.Conditions) > 0 && job.Spec.TTLSecondsAfterFinished == nil:
		return nil
	case len(job.Status.Conditions) > 0:
		return client.IgnoreNotFound(c.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		return nil
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: "run-" + string(job.UID), Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: job.Spec.Template.Spec,
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); apierrors.IsNotFound(err) {
		return c.Create(ctx, pod)
	}
	end := batchv1.JobComplete
	pod.Status.Phase = corev1.PodSucceeded
	if err := c.Status().Update(ctx, pod); err != nil {
		return err
	}
	if job.Spec.Template.Spec.Containers[0].Image == "migrate:"+failingVersion {
		end = batchv1.JobFailed
	}
	job.Status.StartTime = new(metav1.Now())
	job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: "Simulated"}}
	return c.Status().Update(ctx, job)
}

// ended are the UIDs of the Jobs that have completed or failed, by their images.
type ended map[string]types.UID

func (ended) State() any { return nil } // what the scenario compares are the objects

func (e ended) observe(job *batchv1.Job) error {
	image := job.Spec.Template.Spec.Containers[0].Image
	if len(job.Status.Conditions) == 0 {
		return nil
	}
	if before, known := e[image]; known && before != job.UID {
		return fmt.Errorf("%s has run twice", image)
	}
	e[image] = job.UID
	return nil
}

// TestRunOnceSurvivesEveryFault has one scenario whose Jobs stay until the next version replaces them, and others whose time
// to live is over at once.
func TestRunOnceSurvivesEveryFault(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: newShop().ObjectMeta}
	cases := map[string]struct {
		ttl     *int32
		actions []reconciletest.Action
		skipped []kinds.Fault
	}{
		"Versions": {nil, []reconciletest.Action{
			reconciletest.Create(newShop(withVersion(failingVersion))), changeShop(withVersion("2")), changeShop(withVersion("3")), reconciletest.Delete(newShop()),
		}, []kinds.Fault{kinds.NotFound}}, // a Job that is complete, and that somebody deletes, stays deleted
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
				SimulatedControllers: []reconciletest.SimulatedController{{For: &batchv1.Job{}, Step: jobs}},
				External:             func() reconciletest.External { return ended{} },
				Always:               runsOnce,
			}), reconciletest.SkipFaults(test.skipped...))
		})
	}
}

// runsOnce returns an error if a version has run twice, or if two Jobs run at once.
func runsOnce(env *reconciletest.Env) error {
	var all batchv1.JobList
	var pods corev1.PodList
	if err := errors.Join(env.List(context.Background(), &all), env.List(context.Background(), &pods)); err != nil {
		return err
	}
	for i := range all.Items {
		if err := env.External.(ended).observe(&all.Items[i]); err != nil {
			return err
		}
	}
	running := ""
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case pod.Status.Phase == corev1.PodSucceeded:
		case running != "":
			return fmt.Errorf("two runs at once: %s and %s", running, pod.Name)
		default:
			running = pod.Name
		}
	}
	return nil
}
