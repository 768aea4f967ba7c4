package reconciletest

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

// SimulatedController is another controller in the cluster, such as the controller of a built-in kind. See
// [Scenario.SimulatedControllers].
//
// Simulated controllers work when the operator has nothing to do, is down or restarts, and while a pass waits for
// something. Then each takes one step at a time, until none has anything left to do. The clock does not move for them:
// what they do at a certain time, they do when the clock has moved on for the operator's delays, or by [Wait].
//
// # The default controllers
//
// If Pods are in the Scheme, these run for each kind that is in it, unless the scenario has a controller for the kind:
//
//   - Deployments, with their ReplicaSets. Pods are created from the template, and become ready in the next step. Pods of another
//     template are replaced all at once, and their ReplicaSet is deleted. ReplicaSets are not compared. The status has the counts of
//     replicas, the observed generation, and the conditions Available and Progressing.
//   - StatefulSets. The claims of volumeClaimTemplates and the pods are created in their order, each pod when the one
//     before is ready, and removed from the highest ordinal on; with the policy Parallel at once. An update replaces the
//     pods one by one, from the highest ordinal down to the partition; with OnDelete, it replaces the pods that somebody
//     deletes. Pods without a controller that match are adopted. The retention policy of claims is followed. The status
//     has the counts of replicas, the observed generation, the current revision and the update revision. The revisions
//     are stored as ControllerRevisions. Their names are not compared, only whether the two are the same.
//   - DaemonSets. One pod is created for each Node of the cluster that the template's node selector selects. In
//     a scenario without Nodes it is as if there were two, node-1 and node-2. An update deletes as many pods at a time
//     as maxUnavailable allows, and creates them again; maxSurge is ignored.
//   - [Jobs], which all complete.
//   - CronJobs. The Job of the latest time of the schedule that has come is created, as the concurrency policy, the
//     starting deadline and suspend allow, and as many finished Jobs are kept as the history limits say. Time passes by
//     [Wait], which takes a hundred steps at most: in an hour, a Job is created up to 36 seconds late.
//   - PersistentVolumeClaims. Each claim is bound to a volume of the size requested. PersistentVolumes are not created,
//     and storage classes are ignored: every volume may grow. If a request grows, the claim gets the condition Resizing,
//     and the new capacity in the next step. A claim that is being deleted goes when no pod uses it.
//   - Services. A Service of type LoadBalancer gets the finalizer service.kubernetes.io/load-balancer-cleanup, and in the
//     next step an address of 198.51.100.0/24 that depends on its name. With {For: &corev1.Service{}} it stays without an
//     address, as in a cluster without a cloud provider. Endpoints are not simulated.
//
// Pods have no node. They are deleted at once, without a grace period. A pod with an image of a registry below the
// top-level domain invalid, such as registry.invalid/web:1, cannot be pulled: it stays pending with the reason
// ImagePullBackOff. A status of a pod that the scenario writes itself is not overruled, so a [Change] can make a pod
// unready. Times such as minReadySeconds and progressDeadlineSeconds are ignored.
type SimulatedController struct {
	// For is an object of the kind that the controller works for, such as &batchv1.Job{}. The default controller of the kind
	// does not run. nil: the controller runs in addition to the default ones.
	For client.Object
	// Step takes one step. It writes nothing if there is nothing to do. It must do the same in every run, and depend on nothing but what it
	// reads, the clock and what is outside of the cluster: a step that has changed nothing is repeated when one of these has changed. nil:
	// nothing is simulated for the kind.
	Step func(ctx context.Context, c client.Client) error
}

// defaultControllers run unless a scenario has another controller for the kind.
func defaultControllers() []SimulatedController {
	return []SimulatedController{
		{For: &appsv1.Deployment{}, Step: controllers.Deployments},
		{For: &appsv1.StatefulSet{}, Step: controllers.StatefulSets},
		{For: &appsv1.DaemonSet{}, Step: controllers.DaemonSets},
		Jobs(func(*batchv1.Job) batchv1.JobConditionType { return batchv1.JobComplete }),
		{For: &batchv1.CronJob{}, Step: controllers.CronJobs},
		{For: &corev1.PersistentVolumeClaim{}, Step: controllers.PersistentVolumeClaims},
		{For: &corev1.Service{}, Step: controllers.Services},
	}
}

// Jobs returns the simulated controller of Jobs. outcome returns the condition with which a Job ends: batchv1.JobComplete
// if its pods succeed, batchv1.JobFailed if one of them fails as at its backoff limit, or "" while its pods run on. It is
// asked again in each step in which the Job runs, and must return the same in every run for the same content.
//
// A Job that is not suspended gets its pods, which end in the next step. Then follow the conditions SuccessCriteriaMet and
// Complete, or FailureTarget and Failed, in one step each, as with the real controller. Retries within the backoff limit are
// not simulated. Parallelism, completions, indexes, activeDeadlineSeconds, ttlSecondsAfterFinished and suspend are followed;
// pod failure and success policies are not. A Job that another controller manages (managedBy) is left alone.
func Jobs(outcome func(job *batchv1.Job) batchv1.JobConditionType) SimulatedController {
	return SimulatedController{For: &batchv1.Job{}, Step: controllers.Jobs(outcome)}
}

// simulatedControllers returns the steps of all controllers: first the default ones whose kinds are in the scheme and that the scenario
// does not replace, and then the controllers of the scenario.
func (s *Scenario) simulatedControllers() (steps []func(context.Context, client.Client) error, err error) {
	replaced := map[schema.GroupVersionKind]bool{}
	for i, c := range s.SimulatedControllers {
		if c.For == nil && c.Step == nil {
			return nil, fmt.Errorf("the scenario's SimulatedControllers[%d] does nothing: set its Step, or its For", i)
		}
		if c.For == nil {
			continue
		}
		if isNil(c.For) {
			return nil, fmt.Errorf("the scenario's SimulatedControllers[%d] is for a nil object: give it one of its kind", i)
		}
		gvk, err := apiutil.GVKForObject(c.For, s.Scheme)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the scenario's SimulatedControllers[%d] is for a kind that is not in its Scheme", i), err)
		}
		replaced[gvk] = true
	}
	for _, c := range defaultControllers() {
		gvk, err := apiutil.GVKForObject(c.For, s.Scheme)
		if err == nil && !replaced[gvk] && s.Scheme.Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) {
			steps = append(steps, c.Step)
		}
	}
	for _, c := range s.SimulatedControllers {
		if c.Step != nil {
			steps = append(steps, c.Step)
		}
	}
	return steps, nil
}
