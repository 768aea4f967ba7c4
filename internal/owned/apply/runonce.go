package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/heldjob"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// This file executes what [feature.NextRunAction] decides for a Job of [ownedresources.Child.RunOnce].

// maxRunActions is the largest number of actions for a Job in one reconcile. A Job never needs as many.
const maxRunActions = 8

// RunOnce executes the next actions for a Job of [ownedresources.Child.RunOnce]. The result has the live Job. It has no object if the Job
// has run and does not exist any more. RunOnce does not check whether the child is ready: see [feature.RunReady].
func (a *Applier) RunOnce(ctx context.Context, o *owned.Owner, child *owned.Declared) (Result, error) {
	d, err := desireRun(o, child)
	if err != nil {
		return Result{}, err
	}
	live, _, err := a.Read(ctx, o, d.Kind, d.Object)
	if err != nil {
		return Result{}, err
	}
	r := &run{applier: a, desired: d, child: child, key: record.Key(record.RunPrefix, o.Namespace, d.Object), live: live}
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.KeepAnnotation(r.key, o.Set) // protects the annotation from a set that wrote it earlier and does not desire the Job any more
	}
	for range maxRunActions {
		if result, done, err := r.act(ctx); done || err != nil {
			return result, err
		}
	}
	return Result{}, fmt.Errorf("%s changes while it is reconciled", d)
}

// run is the state of RunOnce for one Job in one reconcile.
type run struct {
	applier *Applier
	desired *owned.Desired
	child   *owned.Declared
	key     string        // the key of the owner's annotation that records the run
	live    client.Object // nil if no live Job exists
}

// act finds out what has to be done next for the Job, and does it. If more has to be done in the same reconcile, done is false.
func (r *run) act(ctx context.Context) (result Result, done bool, err error) {
	var job *feature.JobState
	if r.live != nil {
		if ref := metav1.GetControllerOfNoCopy(r.live); ref == nil || ref.UID != r.desired.Owner.Reference.UID {
			return r.actOnForeign(ctx)
		}
		if job, err = feature.Observe(r.live); err != nil {
			return Result{}, false, err
		}
	}
	last := record.ParseRun(r.desired.Owner.Object.GetAnnotations()[r.key])
	//exhaustive:enforce
	switch action := feature.NextRunAction(last, r.child.Content, job); action {
	case feature.RunCreate:
		r.live, err = r.create(ctx)
	case feature.RunName:
		err = r.setRecord(ctx, record.RunStarted, job.UID)
	case feature.RunStart:
		r.live, err = r.start(ctx)
	case feature.RunRecordComplete:
		err = r.setRecord(ctx, record.RunComplete, "")
	case feature.RunRecordFailed:
		err = r.setRecord(ctx, record.RunFailed, "")
	case feature.RunRelease:
		err = r.removeFinalizer(ctx)
	case feature.RunReplace:
		return Result{Object: r.live}, true, r.replace(ctx)
	case feature.RunDiscard:
		return Result{}, true, r.delete(ctx, metav1.DeletePropagationBackground)
	case feature.RunDeletePods:
		return r.deletePods(ctx)
	case feature.RunWait:
		return Result{Object: r.live}, true, terminating(r.desired.Kind, r.live)
	case feature.RunApply:
		result, err = r.apply(ctx)
		return result, true, err
	case feature.RunIdentify: // the Job was created without RunOnce, or somebody has removed the annotation
		if result, err = r.apply(ctx); plan.IsInvalid(err) {
			err = r.replace(ctx)
		}
		return result, true, err
	case feature.RunNothing:
		return Result{Object: r.live, Operation: Unchanged}, true, nil
	}
	return Result{}, false, err
}

// deletePods is the action for a Job that somebody has deleted without its pods while it ran. If none of its pods runs any more, deletePods
// removes the finalizer, so that the Job goes. Otherwise it deletes the Job once more, together with its pods. Without a manager it does
// not read the pods, and always deletes the Job once more.
func (r *run) deletePods(ctx context.Context) (result Result, done bool, err error) {
	if r.desired.Owner.APIReader != nil {
		pod, err := findRunningPod(ctx, r.desired)
		if err != nil {
			return Result{}, false, err
		}
		if pod == nil {
			return Result{}, false, r.removeFinalizer(ctx)
		}
	}
	if err := r.delete(ctx, metav1.DeletePropagationForeground); err != nil {
		return Result{}, true, err
	}
	return Result{Object: r.live}, true, terminating(r.desired.Kind, r.live)
}

// actOnForeign does the same as act for a live Job that this owner does not control: another owner controls it, or nobody.
func (r *run) actOnForeign(ctx context.Context) (result Result, done bool, err error) {
	if released, err := r.removeFormerFinalizer(ctx); err != nil || released {
		r.live = nil
		return Result{}, false, err
	}
	result, err = r.apply(ctx) // depending on its owner, the Job is refused, adopted, or waited for
	return result, true, err
}

func (r *run) apply(ctx context.Context) (Result, error) {
	return r.applier.applyNormalized(ctx, r.desired.Owner, *r.child, r.desired.Object, r.desired.Full)
}

func (r *run) setRecord(ctx context.Context, state record.RunState, job types.UID) error {
	o := r.desired.Owner
	return write.SetRecord(ctx, o, r.key, record.Run{State: state, Content: r.child.Content, UID: job, Set: o.Set}.String())
}

// desireRun returns the desired Job with the annotations of [ownedresources.Child.RunOnce]. Do not normalize the result again: if the Job
// has a copy of another object's metadata, the annotations would be removed, and the fields of [ownedresources.Child.CreateOnly] would be
// lost.
func desireRun(o *owned.Owner, child *owned.Declared) (*owned.Desired, error) {
	object, full, err := child.Kind.Normalize(child.Object, child.Options)
	if err != nil {
		return nil, err
	}
	if child.Content, err = feature.RunContent(child.Kind, object); err != nil {
		return nil, err
	}
	for _, obj := range []*client.Object{&object, &full} {
		*obj = (*obj).DeepCopyObject().(client.Object)
		owned.SetAnnotation(*obj, record.Content, child.Content)
		owned.SetAnnotation(*obj, record.RunOwner, string(o.Reference.UID))
	}
	encoded, err := child.Kind.Comparer.AppendJSON(nil, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", child.Kind.Describe(object), err)
	}
	return &owned.Desired{
		Kind: child.Kind, Object: object, Full: full, Sum: owned.SumOf(encoded), Owner: o, Options: child.Options, Binding: child.Binding, Order: child.Order, Hold: child.Hold, Reads: child.Reads,
	}, nil
}

// create creates the Job. If a Job of that name already exists, it returns the existing Job.
func (r *run) create(ctx context.Context) (client.Object, error) {
	d := r.desired
	c, err := r.applier.prepareCreation(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := waitForFormerPods(ctx, d); err != nil {
		return nil, err
	}
	if err := d.Owner.RequireCurrent(ctx); err != nil { // an old version of the owner does not show which Jobs have run
		return nil, err
	}
	Send(ctx, c)
	live, err := r.applier.finish(ctx, c)
	if apierrors.IsAlreadyExists(err) {
		return readUnseen(ctx, d, err)
	}
	return live, err
}

// waitForFormerPods returns a [*owned.WaitingError] while a pod of an earlier Job of this name runs. Somebody has deleted
// that Job without its pods, or the garbage collector has not deleted them yet. Without a manager the pods are not
// read.
func waitForFormerPods(ctx context.Context, d *owned.Desired) error {
	if d.Owner.APIReader == nil {
		return nil
	}
	pod, err := findRunningPod(ctx, d)
	if pod == nil || err != nil {
		return err
	}
	return owned.NewWaiting(feature.ReasonPodsRunning, feature.PodRecheck, fmt.Sprintf(
		"%s is not created while Pod %s of a former Job of this name runs: wait for its end, or delete it", d, client.ObjectKeyFromObject(pod)))
}

// findRunningPod returns a pod that has not ended and that belongs to a Job of this name. If it finds none, it returns nil.
func findRunningPod(ctx context.Context, d *owned.Desired) (client.Object, error) {
	name := d.Object.GetName()
	if len(validation.IsValidLabelValue(name)) > 0 {
		return nil, nil // the API server refuses a Job whose name is not a valid label value
	}
	pods, err := d.Owner.ListLive(ctx, feature.PodKind, d.Object.GetNamespace(), client.MatchingLabels{batchv1.JobNameLabel: name})
	if err != nil {
		return nil, fmt.Errorf("pods of %s: %w", d, err)
	}
	for i := range pods {
		phase, _, _ := unstructured.NestedString(pods[i].Object, "status", "phase") // the API server always sets the phase
		controller := metav1.GetControllerOfNoCopy(&pods[i])
		isOfJob := controller == nil || controller.Kind == d.Kind.GVK.Kind && controller.Name == name
		if isOfJob && phase != string(corev1.PodSucceeded) && phase != string(corev1.PodFailed) {
			return &pods[i], nil
		}
	}
	return nil, nil
}

// start starts the suspended Job. The owner's annotation already records the Job's UID.
func (r *run) start(ctx context.Context) (client.Object, error) {
	answer, o := likeLive(r.desired.Kind, r.live), r.desired.Owner
	if err := heldjob.Start(ctx, o.Client, r.live, answer, o.FieldManager); err != nil {
		return nil, err
	}
	r.applier.Writes.Record(answer)
	return answer, nil
}

// likeLive returns an empty object of the Go type that live has. live may be unstructured even if k is a typed kind.
func likeLive(k *owned.Kind, live client.Object) client.Object {
	obj := reflect.New(reflect.TypeOf(live).Elem()).Interface().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	return obj
}

// RemoveRunFinalizer removes the finalizer opblocks.dev/run-once from a Job. It returns the updated Job, or nil if the Job is gone.
func RemoveRunFinalizer(ctx context.Context, writes *ownwrites.Writes, o *owned.Owner, k *owned.Kind, live client.Object) (client.Object, error) {
	finalizers := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return f == record.RunOnce })
	answer := likeLive(k, live)
	switch err := write.PatchLocked(ctx, o, live, answer, map[string]any{"finalizers": finalizers}, nil); {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("remove the finalizer from %s: %w", k.Describe(live), err)
	case err != nil, live.GetDeletionTimestamp() != nil && len(finalizers) == 0:
		writes.Forget(live, client.ObjectKeyFromObject(live))
		return nil, nil
	case live.GetDeletionTimestamp() == nil: // a Job that is being deleted may be gone after this write, so it is not remembered
		writes.Record(answer)
	}
	return answer, nil
}

func (r *run) removeFinalizer(ctx context.Context) (err error) {
	r.live, err = RemoveRunFinalizer(ctx, r.applier.Writes, r.desired.Owner, r.desired.Kind, r.live)
	return err
}

// removeFormerFinalizer removes the finalizer from a Job that is being deleted and that belongs to a former owner (a deleted owner of the
// same name). Finalize should have removed it before that owner was gone, but somebody may have removed the owner's own finalizer by hand.
func (r *run) removeFormerFinalizer(ctx context.Context) (released bool, err error) {
	o := r.desired.Owner
	if _, former := errors.AsType[owned.OrphanError](o.MayWrite(r.desired, r.live)); !former ||
		r.live.GetDeletionTimestamp() == nil || !slices.Contains(r.live.GetFinalizers(), record.RunOnce) {
		return false, nil
	}
	if err := o.RequireCurrent(ctx); err != nil { // if our owner exists, the former owner of the same name is gone
		return false, err
	}
	err = r.removeFinalizer(ctx)
	return err == nil, err
}

// replace deletes a Job whose content is not the desired one. The deletion ends after the Job's pods are gone. If the request succeeds, the
// error is a [*owned.WaitingError].
func (r *run) replace(ctx context.Context) error {
	d := r.desired
	if d.Hold != "" {
		return d.Held("is not replaced")
	}
	if _, err := write.TryCreation(ctx, d); err != nil {
		return fmt.Errorf("%s is not replaced, since its new content would be refused: %w", d, err)
	}
	if err := d.Owner.RequireCurrent(ctx); err != nil {
		return err
	}
	if err := r.delete(ctx, metav1.DeletePropagationForeground); err != nil {
		return err
	}
	r.applier.Report(ctx, d.Owner, d.Kind, r.live, report.OutcomeRecreated, "")
	return owned.NewWaiting(ReasonRecreating, 0, fmt.Sprintf("%s is replaced, since its content has changed", d))
}

// delete deletes the Job in the version that was read. If the Job has changed since, the error is a conflict.
func (r *run) delete(ctx context.Context, policy metav1.DeletionPropagation) error {
	if err := write.DeleteExactly(ctx, r.desired.Owner.Client, r.live, policy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", r.desired, err)
	}
	r.applier.Writes.Forget(r.live, client.ObjectKeyFromObject(r.live))
	return nil
}

func terminating(k *owned.Kind, live client.Object) *owned.WaitingError {
	return owned.NewWaiting(owned.ReasonTerminating, 0, k.Describe(live)+" is being deleted")
}
