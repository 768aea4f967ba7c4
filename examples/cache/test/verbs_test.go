package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestEachVerbIsUsed takes away each verb of each rule, where owner references are enforced.
func TestEachVerbIsUsed(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), "testdata/servicemonitors.yaml"))
	operatortest.Install(t, u.User, "cache").AssertEachVerbUsed(t, lifecycle)
}

// lifecycle uses all permissions of the operator. The operator is the only controller: the user does what the others
// would do.
func lifecycle(of *operatortest.User) *operatortest.Lifecycle {
	u := &user{of}
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"})
	monitor.SetNamespace(u.Namespace)
	monitor.SetName("web")
	backups := &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("web-backups")}
	all := append(children(u, "web"), monitor, backups)

	cache := u.cache("web")
	cache.Spec.SettingsFrom, cache.Spec.Priority = &corev1.LocalObjectReference{Name: "common"}, new(int32(7))
	cache.Spec.Backup = &storev1alpha1.BackupSpec{Schedule: "@yearly"}
	steps := []operatortest.LifecycleStep{{Do: u.CreateAll(cache), Until: u.exist(all...)}}
	namespaced := slices.DeleteFunc(slices.Clone(all), func(child client.Object) bool { return child.GetNamespace() == "" })
	steps = append(steps,
		u.relabel(all...),
		operatortest.LifecycleStep{Do: u.CreateAll(u.cache(operatortest.Refused)), Until: u.exist(u.Service(operatortest.Refused))},
		u.unblock(namespaced...),
	)
	steps = append(steps,
		operatortest.LifecycleStep{Do: u.edit(func(s *storev1alpha1.CacheSpec) { s.Backup.Schedule = "@every 1s" }), Until: u.backUp},
		operatortest.LifecycleStep{Until: u.deleteJobs},
		operatortest.LifecycleStep{Until: u.hasJob},
		operatortest.LifecycleStep{Do: u.edit(func(s *storev1alpha1.CacheSpec) { s.Priority, s.Backup = nil, nil }), Until: u.unused},
		operatortest.LifecycleStep{Do: u.adoptPod, Until: u.exist()},
		operatortest.LifecycleStep{Do: u.edit(func(s *storev1alpha1.CacheSpec) { s.Storage = gi("2") }), Until: u.isReplaced},
		operatortest.LifecycleStep{Do: u.deleteWhileReplaced, Until: u.absent(u.cache("web"), &corev1.Pod{ObjectMeta: u.Meta("web-0")})},
	)
	return &operatortest.Lifecycle{
		Options: ctrl.Options{Scheme: scheme, Cache: controller.Cache(u.Namespace), Client: controller.Client()},
		Setup:   (&controller.Operator{}).SetupWithManager,
		Before:  u.createVolume,
		Steps:   steps,
	}
}

func (u *user) edit(edit func(*storev1alpha1.CacheSpec)) func(context.Context) error {
	return operatortest.Edit(u.User, u.cache("web"), func(c *storev1alpha1.Cache) { edit(&c.Spec) })
}

// exist returns a function that returns an error unless all objects exist.
func (u *user) exist(objects ...client.Object) func(context.Context) error {
	return inTurn(objects, func(ctx context.Context, obj client.Object) error {
		return u.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	})
}

// absent returns a function that returns an error while one of the objects exists.
func (u *user) absent(objects ...client.Object) func(context.Context) error {
	return inTurn(objects, func(ctx context.Context, obj client.Object) error { return u.Absent(obj)(ctx) })
}

// inTurn returns a function that calls check with each object, until the first error.
func inTurn(objects []client.Object, check func(context.Context, client.Object) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, obj := range objects {
			if err := check(ctx, obj); err != nil {
				return err
			}
		}
		return nil
	}
}

// relabel changes a label of children, which the operator changes back.
func (u *user) relabel(children ...client.Object) operatortest.LifecycleStep {
	const label = "app.kubernetes.io/name"
	return u.change(children, `[{"op": "replace", "path": "/metadata/labels/app.kubernetes.io~1name", "value": "other"}]`,
		func(child client.Object) bool { return child.GetLabels()[label] == "cache" })
}

// unblock changes the owner reference of children, which the operator changes back.
func (u *user) unblock(children ...client.Object) operatortest.LifecycleStep {
	return u.change(children, `[{"op": "remove", "path": "/metadata/ownerReferences/0/blockOwnerDeletion"}]`,
		func(child client.Object) bool {
			block := child.GetOwnerReferences()[0].BlockOwnerDeletion
			return block != nil && *block
		})
}

// change sends a JSON patch for each of the children, and waits until the operator has changed all of them back.
func (u *user) change(children []client.Object, patch string, changedBack func(client.Object) bool) operatortest.LifecycleStep {
	return operatortest.LifecycleStep{
		Do: inTurn(children, func(ctx context.Context, child client.Object) error {
			return u.Patch(ctx, child, client.RawPatch(types.JSONPatchType, []byte(patch)))
		}),
		Until: inTurn(children, func(ctx context.Context, child client.Object) error {
			return operatortest.Shows(u.User, child, changedBack)(ctx)
		}),
	}
}

// createVolume creates what a StatefulSet's controller would: a pod, and its claim, which is bound and may grow.
func (u *user) createVolume(ctx context.Context) error {
	labels := map[string]string{"app.kubernetes.io/name": "cache", "app.kubernetes.io/instance": "web"}
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: u.Namespace}, Provisioner: "example.com/none", AllowVolumeExpansion: new(true),
	}
	pod := &corev1.Pod{ObjectMeta: u.Meta("web-0"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Image: "redis"}}}}
	pod.Labels = labels
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("cache-data-web-0")}
	claim.Labels = labels
	claim.Spec.StorageClassName, claim.Spec.VolumeName = &class.Name, "some"
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *gi("1")}
	common := &corev1.ConfigMap{ObjectMeta: u.Meta("common"), Data: map[string]string{"maxmemory": "1mb"}}
	if err := u.CreateAll(class, pod, claim, common)(ctx); err != nil {
		return err
	}
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
	return u.Status().Update(ctx, claim)
}

// backUp completes the Jobs of backups, and returns nil once the operator has deleted one.
func (u *user) backUp(ctx context.Context) error {
	var jobs batchv1.JobList
	if err := u.List(ctx, &jobs, client.InNamespace(u.Namespace)); err != nil {
		return err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if *job.Spec.Suspend || len(job.Status.Conditions) > 0 {
			continue
		}
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = new(metav1.Now()), new(metav1.Now()), 1
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue})
		}
		if err := u.Status().Update(ctx, job); err != nil {
			return err
		}
	}
	var events corev1.EventList
	if err := u.List(ctx, &events, client.InNamespace(u.Namespace)); err != nil {
		return err
	}
	started := 0
	for _, event := range events.Items {
		if event.Reason == "Started" {
			started++
		}
	}
	if started < 5 || len(jobs.Items) > 4 {
		return fmt.Errorf("%d Jobs were started, and %d are there", started, len(jobs.Items))
	}
	return nil
}

// deleteJobs deletes the Jobs of all backups, and returns nil once none is left. One may have been created after the last deletion. Before
// the operator creates the next Job, it then looks for the last one.
func (u *user) deleteJobs(ctx context.Context) error {
	var jobs batchv1.JobList
	if err := u.List(ctx, &jobs, client.InNamespace(u.Namespace)); err != nil || len(jobs.Items) == 0 {
		return err
	}
	err := u.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(u.Namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
	return cmp.Or(err, fmt.Errorf("there were %d Jobs", len(jobs.Items)))
}

// hasJob returns nil once there is a Job that is not being deleted.
func (u *user) hasJob(ctx context.Context) error {
	var jobs batchv1.JobList
	if err := u.List(ctx, &jobs, client.InNamespace(u.Namespace)); err != nil {
		return err
	}
	for i := range jobs.Items {
		if jobs.Items[i].DeletionTimestamp == nil {
			return nil
		}
	}
	return errors.New("no Job was created")
}

// unused returns nil once the PriorityClass and the claim for backups are gone. It removes the finalizer of a claim that is being
// deleted, as the controller does that protects claims in use.
func (u *user) unused(ctx context.Context) error {
	backups := &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("web-backups")}
	if err := u.exist(backups)(ctx); err == nil && backups.DeletionTimestamp != nil {
		if err := u.Patch(ctx, backups, withoutFinalizers); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return u.absent(backups, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace + ".web"}})(ctx)
}

// isReplaced returns nil once the claim has grown and the StatefulSet is being deleted without its pods.
func (u *user) isReplaced(ctx context.Context) error {
	set, claim := &appsv1.StatefulSet{ObjectMeta: u.Meta("web")}, &corev1.PersistentVolumeClaim{ObjectMeta: u.Meta("cache-data-web-0")}
	if err := u.exist(set, claim)(ctx); err != nil {
		return err
	}
	if set.DeletionTimestamp == nil || !claim.Spec.Resources.Requests.Storage().Equal(*gi("2")) {
		return errors.New("the StatefulSet is not being replaced")
	}
	return nil
}

// adoptPod makes the StatefulSet the controller of the pod, as its controller would.
func (u *user) adoptPod(ctx context.Context) error {
	set, pod := &appsv1.StatefulSet{ObjectMeta: u.Meta("web")}, &corev1.Pod{ObjectMeta: u.Meta("web-0")}
	if err := u.exist(set, pod)(ctx); err != nil {
		return err
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return u.Update(ctx, pod)
}

// deleteWhileReplaced deletes the Cache while its StatefulSet is being replaced, and orphans the pod as the garbage collector would.
func (u *user) deleteWhileReplaced(ctx context.Context) error {
	if err := u.Delete(ctx, u.cache("web")); err != nil {
		return err
	}
	withoutOwners := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
	if err := u.Patch(ctx, &corev1.Pod{ObjectMeta: u.Meta("web-0")}, withoutOwners); err != nil {
		return err
	}
	set := &appsv1.StatefulSet{ObjectMeta: u.Meta("web")}
	return u.Patch(ctx, set, withoutFinalizers)
}

var withoutFinalizers = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
