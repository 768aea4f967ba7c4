package scheduledjobs_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// ledger is a ConfigMap that counts, by the name of the Job, how often each Job has run. It is compared with the ledger of
// a run without faults, because no run may be lost and none may happen twice.
func ledger() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ledger"}}
}

// counted is an annotation of the ledger with the UIDs of the Jobs that it has counted.
const counted = "counted"

// count counts the Jobs that have started, in the ledger. It is a simulated controller, in addition to the simulated
// Job controller.
func count(ctx context.Context, c client.Client) error {
	var all batchv1.JobList
	runs := ledger()
	if err := errors.Join(c.List(ctx, &all), c.Get(ctx, client.ObjectKeyFromObject(runs), runs)); err != nil {
		return err
	}
	if runs.Data == nil {
		runs.Data = map[string]string{}
	}
	seen := runs.Annotations[counted]
	for i := range all.Items {
		job := &all.Items[i]
		if job.Status.StartTime == nil || strings.Contains(seen, string(job.UID)) {
			continue
		}
		times, _ := strconv.Atoi(runs.Data[job.Name])
		runs.Data[job.Name] = strconv.Itoa(times + 1)
		seen += " " + string(job.UID)
	}
	if seen == runs.Annotations[counted] {
		return nil
	}
	metav1.SetMetaDataAnnotation(&runs.ObjectMeta, counted, seen)
	return c.Update(ctx, runs)
}

// jobs simulates the Job controller. A Job finishes at once unless its image is "endless".
var jobs = reconciletest.Jobs(func(job *batchv1.Job) batchv1.JobConditionType {
	if _, finished := job.Labels["finished"]; job.Spec.Template.Spec.Containers[0].Image == "endless" && !finished {
		return ""
	}
	return batchv1.JobComplete
})

// once returns an error if a Job has run more than once.
func once(env *reconciletest.Env) error {
	runs := ledger()
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(runs), runs); err != nil {
		return err
	}
	for name, times := range runs.Data {
		if times != "1" {
			return fmt.Errorf("%s has run %s times", name, times)
		}
	}
	return nil
}

// nextRun waits until the next run is due. It then waits a minute, in which an operation that a fault has interrupted is
// finished before the next action.
var nextRun = []reconciletest.Action{reconciletest.Wait(10 * time.Minute), reconciletest.Wait(time.Minute)}

func scenario(actions ...reconciletest.Action) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"}, Objects: []client.Object{ledger()},
		Start: func(p *reconciletest.Process) error {
			return reconcile.For(p.Manager(), reconcile.Named("backup", newStep())).Complete()
		},
		SimulatedControllers: []reconciletest.SimulatedController{jobs, {Step: count}},
		Actions:              actions, Always: once, Ignore: reconciletest.Ignore{Fields: map[string][]string{"ConfigMap": {"metadata.annotations." + counted}}, Func: ignore},
		Horizon: 2 * time.Minute, // shorter than the time between an action and the next run
	}
}

// ignore removes fields that may differ from the run without faults: the UID of a Job that is gone, and a success that
// nobody saw before the TTL removed the Job. The ledger already checks these.
func ignore(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "status", "lastJobUID")
	if _, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttl"); found {
		unstructured.RemoveNestedField(obj.Object, "status", "lastSuccessfulTime")
	}
}

// finish returns an action that finishes an endless Job.
func finish(name string) reconciletest.Action {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	return reconciletest.Change(job, func(job *batchv1.Job) { metav1.SetMetaDataLabel(&job.ObjectMeta, "finished", "") })
}
