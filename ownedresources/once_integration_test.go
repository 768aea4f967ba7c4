package ownedresources

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// onceEnv is a serverEnv with helpers for the tests of Jobs and of StatefulSets.
type onceEnv struct {
	*testing.T
	*serverEnv
	posts int // the number of POST requests for Jobs, see createdJobs
}

func newOnceEnv(t *testing.T) *onceEnv {
	t.Helper()
	env := &onceEnv{T: t, serverEnv: newClusterEnv(t, ShopSpec{Version: "1", Storage: new(resource.MustParse("1Gi"))})}
	env.Create(t, env.Owner)
	return env
}

// start starts an operator with this set, and returns a function that stops it.
func (env *onceEnv) start(set *ChildSet[*Shop]) (stop func()) {
	env.Helper()
	return env.startStep(env.T, reconcile.Named("children", set), env.Namespace)
}

func (env *onceEnv) eventually(what string, is func() bool) {
	env.Helper()
	require.Eventually(env, is, controlplane.Patience, 20*time.Millisecond, what)
}

// read reads the object that has the owner's name, and reports whether it exists.
func (env *onceEnv) read(obj client.Object) bool {
	env.Helper()
	err := env.Other.Get(env.Context(), client.ObjectKeyFromObject(env.Owner), obj)
	require.NoError(env, client.IgnoreNotFound(err))
	return err == nil
}

// set changes the spec of the owner.
func (env *onceEnv) set(edit func(*ShopSpec)) {
	env.Helper()
	env.setSpec(env.T, edit)
}

func (env *onceEnv) setVersion(version string) {
	env.Helper()
	env.set(func(s *ShopSpec) { s.Version = version })
}

func (env *onceEnv) setStorage(size string) {
	env.Helper()
	env.set(func(s *ShopSpec) { s.Storage = new(resource.MustParse(size)) })
}

// runRecord returns the state of the Job from the owner's annotation.
func (env *onceEnv) runRecord() string {
	var owner Shop
	env.read(&owner)
	_, end, _ := strings.Cut(owner.Annotations[record.RunPrefix+"web"], ":")
	end, _, _ = strings.Cut(end, ":")
	return end
}

// createdJobs returns how often the operator has sent a POST of a Job so far. Dry runs count.
func (env *onceEnv) createdJobs() int {
	for _, request := range env.Requests.Sent() {
		if request == "POST jobs" {
			env.posts++
		}
	}
	return env.posts
}

// outcome reconciles once more, and returns the error. If a controller wrote a child at the same time, it reconciles
// again.
func (env *onceEnv) outcome(set *ChildSet[*Shop]) (err error) {
	set.SetName("children") // the operator of start uses the same name
	for range 100 {
		var owner Shop
		env.read(&owner)
		if err = set.Reconcile(env.Context(), env.Other, &owner); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// migrated returns a set with a Job that runs once, and a ConfigMap that comes after it. If hold is true, the pods stay
// pending.
func migrated(ttl *int32, hold bool) *ChildSet[*Shop] {
	migrate := Build(func(owner *Shop) *batchv1.Job {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Labels: map[string]string{"app": owner.Name}},
			Spec: batchv1.JobSpec{
				TTLSecondsAfterFinished: ttl, BackoffLimit: new(int32(0)),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "migrate", Image: "migrate:" + owner.Spec.Version}},
				}},
			},
		}
		if hold {
			job.Spec.Template.Annotations = map[string]string{controlplane.HoldAnnotation: "true"}
		}
		return job
	}).RunOnce()
	after := Build(func(owner *Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}, Data: map[string]string{"version": owner.Spec.Version}}
	}).After(migrate)
	return Ensure(after, migrate)
}

// jobPods returns those pods of the Job that have not ended.
func (env *onceEnv) jobPods() []corev1.Pod {
	var all corev1.PodList
	require.NoError(env, env.Other.List(env.Context(), &all, client.InNamespace(env.Namespace), client.MatchingLabels{"job-name": "web"}))
	return slices.DeleteFunc(all.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

func (env *onceEnv) failPod() {
	env.Helper()
	env.eventually("the pod runs", func() bool { return len(env.jobPods()) == 1 })
	pod := env.jobPods()[0]
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))
	require.NoError(env, env.Other.Status().Patch(env.Context(), &pod, patch))
}

func (env *onceEnv) isAfter(version string) func() bool {
	return func() bool {
		var after corev1.ConfigMap
		err := env.Other.Get(env.Context(), types.NamespacedName{Namespace: env.Namespace, Name: "after"}, &after)
		return err == nil && after.Data["version"] == version
	}
}

// The Job is deleted as soon as it ends, because its time to live is zero.
func TestRunOnceWithATimeToLive(t *testing.T) {
	env := newOnceEnv(t)
	stop := env.start(migrated(new(int32(0)), false))
	env.eventually("what comes after the Job", env.isAfter("1"))
	env.eventually("the Job is gone", func() bool { return !env.read(&batchv1.Job{}) })
	require.Equal(t, "complete", env.runRecord())
	require.Equal(t, 1, env.createdJobs())

	stop()
	stop = env.start(migrated(new(int32(0)), false))
	env.set(func(s *ShopSpec) { s.Content = "other" })
	require.NoError(t, env.Other.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "after"}}))
	env.eventually("it is ready without the Job", env.isAfter("1"))
	require.Equal(t, 1, env.createdJobs(), "it does not run again, also after a restart")

	env.setVersion("2")
	env.eventually("the second version", env.isAfter("2"))
	env.eventually("the Job is gone", func() bool { return !env.read(&batchv1.Job{}) })
	require.Equal(t, 2, env.createdJobs(), "another content runs once")

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+record.RunPrefix+`web":null}}}`))
	require.NoError(t, env.Other.Patch(t.Context(), env.Owner.DeepCopy(), patch))
	env.eventually("it runs again since somebody asks for it", func() bool { return env.createdJobs() == 3 && env.runRecord() == "complete" })
	stop()
}

func TestRunOnceOfAFailingJob(t *testing.T) {
	env := newOnceEnv(t)
	env.start(migrated(nil, true))
	env.failPod()
	var failed *FailedError
	env.eventually("it is shown", func() bool { return errors.As(env.outcome(migrated(nil, true)), &failed) })
	require.Equal(t, "BackoffLimitExceeded", failed.Reason())
	require.ErrorContains(t, failed, "has failed: ")
	require.False(t, env.isAfter("1")())
	require.Equal(t, 1, env.createdJobs())

	var job batchv1.Job
	require.True(t, env.read(&job))
	require.NoError(t, env.Other.Delete(t.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	env.eventually("it runs again when somebody has deleted it", func() bool {
		var again batchv1.Job
		return env.read(&again) && again.UID != job.UID && len(env.jobPods()) == 1
	})

	env.failPod()
	env.eventually("it fails again", func() bool { return errors.As(env.outcome(migrated(nil, true)), &failed) })
	env.setVersion("2")
	env.eventually("the next version runs", func() bool {
		return env.read(&job) && job.Spec.Template.Spec.Containers[0].Image == "migrate:2" && len(env.jobPods()) == 1
	})
}

func TestRunOnceOfAFailingJobWithATimeToLive(t *testing.T) {
	env := newOnceEnv(t)
	stop := env.start(migrated(new(int32(0)), true))
	env.failPod()
	env.eventually("its time to live has removed it", func() bool { return env.runRecord() == "failed" && !env.read(&batchv1.Job{}) })
	stop()
	set := migrated(new(int32(0)), true)
	err := env.outcome(set)
	var failed *FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, failed, "Job "+env.Namespace+"/web has failed and is gone; change it, or remove the annotation run-once.opblocks.dev/web of Shop "+env.Namespace+"/web to run it again")
	require.Equal(t, 1, env.createdJobs())
}

// A running Job is replaced, then deleted by somebody, then deleted with its owner. Two Jobs never run at once.
func TestRunOnceNeverTwoAtOnce(t *testing.T) {
	env := newOnceEnv(t)
	env.start(migrated(nil, true))
	env.eventually("the pod runs", func() bool { return len(env.jobPods()) == 1 })
	// The pod does not end at once.
	first := env.jobPods()[0]
	slow := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/slow"}]`))
	require.NoError(t, env.Other.Patch(t.Context(), &first, slow)) // it has the finalizer of the Job controller

	env.setVersion("2")
	var job batchv1.Job
	env.eventually("the Job is being deleted", func() bool { return env.read(&job) && job.DeletionTimestamp != nil && len(job.Finalizers) == 1 })
	require.Equal(t, []string{metav1.FinalizerDeleteDependents}, job.Finalizers, "it waits for its pod")
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))
	require.NoError(t, env.Other.Patch(t.Context(), &first, patch))
	env.eventually("the next one", func() bool {
		return env.read(&job) && job.DeletionTimestamp == nil && job.Spec.Template.Spec.Containers[0].Image == "migrate:2" && len(env.jobPods()) == 1
	})

	second := env.jobPods()[0]
	require.NoError(t, env.Other.Patch(t.Context(), &second, slow))
	uid := job.UID
	require.NoError(t, env.Other.Delete(t.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	env.eventually("the pod goes before the Job, although it was deleted in the background", func() bool {
		return env.read(&job) && slices.Equal(job.Finalizers, []string{metav1.FinalizerDeleteDependents}) && len(env.jobPods()) == 1 && env.jobPods()[0].DeletionTimestamp != nil
	})
	require.NoError(t, env.Other.Patch(t.Context(), &second, patch))
	env.eventually("it runs again", func() bool { return env.read(&job) && job.UID != uid && len(env.jobPods()) == 1 })

	require.NoError(t, env.Other.Delete(t.Context(), env.Owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	env.eventually("nothing is left", func() bool {
		return !env.read(&batchv1.Job{}) && !env.read(&Shop{}) && len(env.jobPods()) == 0
	})
}

// When the owner is deleted, the finalizer is removed from its Job, also with orphan propagation, where the Job
// stays.
func TestRunOnceOfAnOwnerThatOrphans(t *testing.T) {
	env := newOnceEnv(t)
	env.start(migrated(nil, true))
	env.eventually("the pod runs", func() bool { return len(env.jobPods()) == 1 })
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	env.eventually("the owner is gone", func() bool { return !env.read(&Shop{}) })
	var job batchv1.Job
	require.True(t, env.read(&job))
	require.NotContains(t, job.Finalizers, record.RunOnce)
	require.Empty(t, job.OwnerReferences)
}

func TestRunOnceIsPruned(t *testing.T) {
	env := newOnceEnv(t)
	wanted := true
	set := Ensure(Build(func(owner *Shop) *batchv1.Job {
		if !wanted {
			return nil
		}
		return migration(owner, nil)
	}).RunOnce())
	set.SetName("jobs")
	require.Error(t, env.outcome(set))
	require.True(t, env.read(&batchv1.Job{}))
	wanted = false
	require.NoError(t, env.outcome(set))
	env.eventually("the Job is gone", func() bool { return !env.read(&batchv1.Job{}) })
}

// A Job that was created before the option RunOnce was added, and that has another content, does not count as having
// run.
func TestRunOnceOfAJobThatExists(t *testing.T) {
	env := newOnceEnv(t)
	build := func(image string, options ...childOption) *ChildSet[*Shop] {
		return Ensure(with(Build(func(owner *Shop) *batchv1.Job {
			job := migration(owner, nil)
			job.Spec.Template.Spec.Containers[0].Image = image
			return job
		}), options...))
	}
	var job batchv1.Job
	require.NoError(t, client.IgnoreNotFound(ignoreWaiting(env.outcome(build("one")))))
	env.eventually("the Job is complete", func() bool { return env.read(&job) && job.Status.CompletionTime != nil })
	first := job.UID
	env.eventually("its own content counts as run", func() bool { return env.outcome(build("one", withRunOnce())) == nil })
	require.Equal(t, "complete", env.runRecord())
	require.True(t, env.read(&job))
	require.Equal(t, first, job.UID)
	require.NotContains(t, job.Finalizers, record.RunOnce)

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+record.Content+`":null}}}`))
	require.NoError(t, env.Other.Patch(t.Context(), &job, patch))
	require.Error(t, env.outcome(build("two", withRunOnce())))
	env.eventually("another content runs", func() bool {
		return env.outcome(build("two", withRunOnce())) == nil && env.read(&job) && job.UID != first
	})
}

func ignoreWaiting(err error) error {
	if _, ok := errors.AsType[*WaitingError](err); ok {
		return nil
	}
	return err
}

// volumes returns a set with a StatefulSet. Its claims have the size and the access mode of the owner's spec, and this storage class. The
// StatefulSet leaves replicas unset, so that a test can scale it.
func volumes(class string) *ChildSet[*Shop] {
	return Ensure(Build(func(owner *Shop) *appsv1.StatefulSet {
		set := statefulSet(owner)
		set.Spec.ServiceName = owner.Name
		claim := &set.Spec.VolumeClaimTemplates[0].Spec
		claim.StorageClassName = &class
		if owner.Spec.AccessMode != "" {
			claim.AccessModes = []corev1.PersistentVolumeAccessMode{owner.Spec.AccessMode}
		}
		return set
	}).ExpandVolumes())
}

func (env *onceEnv) claims() (sizes []string) {
	var all corev1.PersistentVolumeClaimList
	require.NoError(env, env.Other.List(env.Context(), &all, client.InNamespace(env.Namespace)))
	for _, claim := range all.Items {
		if claim.Status.Phase == corev1.ClaimBound {
			sizes = append(sizes, claim.Spec.Resources.Requests.Storage().String())
		}
	}
	return sizes
}

// setPods returns the pods that a StatefulSet controls, by their names.
func (env *onceEnv) setPods(set *appsv1.StatefulSet) map[string]types.UID {
	var all corev1.PodList
	require.NoError(env, env.Other.List(env.Context(), &all, client.InNamespace(env.Namespace)))
	found := map[string]types.UID{}
	for i := range all.Items {
		if pod := &all.Items[i]; metav1.IsControlledBy(pod, set) && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			found[pod.Name] = pod.UID
		}
	}
	return found
}

func (env *onceEnv) scale(n string) {
	env.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"}}
	require.NoError(env, env.Other.Patch(env.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+n+`}}`))))
}

func TestExpandVolumes(t *testing.T) {
	env := newOnceEnv(t)
	env.start(volumes("simulated"))
	var set appsv1.StatefulSet
	env.eventually("the StatefulSet", func() bool { return env.read(&set) })
	env.scale("3")
	env.eventually("three claims", func() bool { return len(env.claims()) == 3 && len(env.setPods(&set)) == 3 })
	env.scale("2")
	env.eventually("two pods", func() bool { return len(env.setPods(&set)) == 2 })
	first, before := set.UID, env.setPods(&set)

	env.setStorage("2Gi")
	env.eventually("the new StatefulSet has adopted the pods", func() bool {
		return env.read(&set) && set.UID != first && len(env.setPods(&set)) == 2 && set.Status.ObservedGeneration == set.Generation
	})
	require.Equal(t, before, env.setPods(&set), "no pod was replaced")
	require.EqualValues(t, 2, *set.Spec.Replicas, "nor scaled away")
	require.Equal(t, "2Gi", set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String())
	require.Equal(t, []string{"2Gi", "2Gi", "2Gi"}, env.claims(), "also that of the pod that was scaled away")
	env.eventually("nothing is left to do", func() bool {
		var owner Shop
		env.read(&owner)
		return owner.Annotations[record.ExpansionPrefix+"web"] == ""
	})
	// The first apply after the creation does not reset the replicas, which another writer has set.
	require.NoError(t, env.Other.Patch(t.Context(), &set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"server","image":"other"}]}}}}`))))
	env.eventually("drift is repaired", func() bool { env.read(&set); return set.Spec.Template.Spec.Containers[0].Image == "server:1" })
	require.EqualValues(t, 2, *set.Spec.Replicas)

	env.setStorage("1Gi")
	var err error
	refused := func() bool { // the operator sends the same change, and one of the two may get a conflict
		err = env.outcome(volumes("simulated"))
		return apierrors.IsInvalid(err)
	}
	env.eventually("volumes cannot shrink", refused)
	require.ErrorContains(t, err, `spec.volumeClaimTemplates[data].spec.resources.requests.storage: Invalid value: "1Gi": the live claim template requests 2Gi, and volumes cannot shrink: request at least as much`)

	env.set(func(s *ShopSpec) { s.AccessMode = corev1.ReadWriteMany }) // set the access mode first: the new size alone would be accepted
	env.setStorage("3Gi")
	env.eventually("another change of the template is refused", refused)
	require.Regexp(t, "volumeClaimTemplates.* field is immutable|fields other than", err.Error()) // the API server's message from version 1.37 on, or of older versions
	require.Equal(t, []string{"2Gi", "2Gi", "2Gi"}, env.claims(), "and nothing grows")
}

// Somebody deletes a StatefulSet before its volumes are enlarged. The next StatefulSet uses the same claims, and enlarges
// them.
func TestExpandVolumesOfAStatefulSetThatIsGone(t *testing.T) {
	env := newOnceEnv(t)
	stop := env.start(volumes("simulated"))
	var set appsv1.StatefulSet
	env.eventually("the pod runs", func() bool { return env.read(&set) && len(env.setPods(&set)) == 1 && len(env.claims()) == 1 })
	stop()
	require.NoError(t, env.Other.Delete(t.Context(), &set))
	env.setStorage("2Gi")
	first := set.UID
	env.start(volumes("simulated"))
	env.eventually("a new StatefulSet", func() bool { return env.read(&set) && set.UID != first && len(env.setPods(&set)) == 1 })
	require.Equal(t, []string{"2Gi"}, env.claims(), "the claim that was left has grown")
}

// The claims of the StatefulSet are bound, but their storage class does not allow expansion.
func TestExpandVolumesRefused(t *testing.T) {
	env := newOnceEnv(t)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}, Provisioner: "example.com/none"}
	require.NoError(t, env.Other.Create(t.Context(), class))
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("9Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		},
	}
	require.NoError(t, env.Other.Create(t.Context(), volume))
	set := volumes(class.Name)
	require.Error(t, env.outcome(set))
	var live appsv1.StatefulSet
	require.True(t, env.read(&live))
	first := live.UID
	env.eventually("the claim is bound", func() bool { return len(env.claims()) == 1 }) // while no claim exists, the StatefulSet is replaced at once

	env.setStorage("2Gi")
	env.eventually("it is refused", func() bool { return apierrors.IsForbidden(env.outcome(set)) })
	err := env.outcome(set)
	require.ErrorContains(t, err, "expand PersistentVolumeClaim "+env.Namespace+"/data-web-0 from 1Gi to 2Gi: ")
	require.ErrorContains(t, err, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	require.True(t, env.read(&live))
	require.Equal(t, first, live.UID, "nothing is deleted")
	require.Nil(t, live.DeletionTimestamp)
	require.NoError(t, env.Other.Delete(t.Context(), class))
	require.NoError(t, env.Other.Delete(t.Context(), volume))
}

// Only the request of a bound claim can be raised.
func TestExpandVolumesOfUnboundClaims(t *testing.T) {
	env := newOnceEnv(t)
	set := volumes("no-such-class")
	require.Error(t, env.outcome(set))
	env.eventually("the claim", func() bool {
		return env.Other.Get(t.Context(), types.NamespacedName{Namespace: env.Namespace, Name: "data-web-0"}, &corev1.PersistentVolumeClaim{}) == nil
	})
	env.setStorage("2Gi")
	err := env.outcome(set)
	wait, ok := errors.AsType[*WaitingError](err)
	require.True(t, ok, "%v", err)
	reason, after := wait.Waiting()
	require.Equal(t, "ClaimNotBound", reason)
	require.Equal(t, 30*time.Second, after)
	require.ErrorContains(t, err, "PersistentVolumeClaim "+env.Namespace+"/data-web-0: a claim can grow when it is bound")
}

// The owner is deleted while its StatefulSet is missing. The pods have no owner then, and are still deleted.
func TestExpandVolumesOfAnOwnerThatIsDeleted(t *testing.T) {
	env := newOnceEnv(t)
	stop := env.start(volumes("simulated"))
	var live appsv1.StatefulSet
	env.eventually("the pod runs", func() bool { return env.read(&live) && len(env.setPods(&live)) == 1 && len(env.claims()) == 1 })
	env.eventually("it is ready", func() bool { return env.outcome(volumes("simulated")) == nil })
	stop()
	env.setStorage("2Gi")
	require.Error(t, env.outcome(volumes("simulated")), "the StatefulSet is deleted, and the operator dies")
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
	env.start(volumes("simulated"))
	env.eventually("nothing is left but the claim", func() bool {
		var pods corev1.PodList
		require.NoError(t, env.Other.List(t.Context(), &pods, client.InNamespace(env.Namespace)))
		return len(pods.Items) == 0 && !env.read(&live) && !env.read(&Shop{})
	})
	require.Equal(t, []string{"2Gi"}, env.claims())
}
