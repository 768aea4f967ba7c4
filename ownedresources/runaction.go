package ownedresources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// What is done for a Job of [RunOnce], as [nextRunAction] decides.

// maxRunActions is more than the number of actions that follow each other in one reconcile.
const maxRunActions = 8

// runOnce does what has to be done for a Job of [RunOnce]. The result has the live object, or none if the Job has run and is
// gone. Whether it is ready is another question: see [applier.runReady].
func (a *applier) runOnce(ctx context.Context, o *owner, child *declared) (Result, error) {
	d, err := a.desireRun(o, child)
	if err != nil {
		return Result{}, err
	}
	live, _, err := a.read(ctx, o, d.kind, d.object)
	if err != nil {
		return Result{}, err
	}
	key := record.Key(record.RunPrefix, o.namespace, d.object)
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.KeepAnnotation(key, o.set) // the set that has written it may not desire the Job any more
	}
	for range maxRunActions {
		var job *jobState
		if live != nil {
			if ref := metav1.GetControllerOfNoCopy(live); ref == nil || ref.UID != o.reference.UID {
				switch released, err := a.removeFormerRunFinalizer(ctx, d, live); {
				case err != nil:
					return Result{}, err
				case released:
					live = nil
					continue
				}
				return a.applyNormalized(ctx, o, *child, d.object, d.full) // it is refused, adopted, or waited for
			}
			if job, err = observe(live); err != nil {
				return Result{}, err
			}
		}
		last := record.ParseRun(o.object.GetAnnotations()[key])
		switch action := nextRunAction(last, child.content, job); action {
		case runCreate:
			live, err = a.createRun(ctx, d)
		case runName:
			err = a.setRecord(ctx, o, key, record.Run{State: record.RunStarted, Content: child.content, UID: job.uid, Set: o.set}.String())
		case runStart:
			live, err = a.startRun(ctx, d, live)
		case runRecordComplete:
			err = a.setRecord(ctx, o, key, record.Run{State: record.RunComplete, Content: child.content, Set: o.set}.String())
		case runRecordFailed:
			err = a.setRecord(ctx, o, key, record.Run{State: record.RunFailed, Content: child.content, Set: o.set}.String())
		case runRelease:
			live, err = a.removeRunFinalizer(ctx, o, d.kind, live)
		case runReplace:
			return Result{Object: live}, a.replaceRun(ctx, d, live)
		case runDiscard:
			return Result{}, a.deleteRun(ctx, d, live, metav1.DeletePropagationBackground)
		case runDeletePods:
			if err := a.deleteRun(ctx, d, live, metav1.DeletePropagationForeground); err != nil {
				return Result{}, err
			}
			return Result{Object: live}, terminating(d.kind, live)
		case runWait:
			return Result{Object: live}, terminating(d.kind, live)
		case runApply:
			return a.applyNormalized(ctx, o, *child, d.object, d.full)
		case runIdentify: // it was made without RunOnce, or somebody has removed the annotation
			result, err := a.applyNormalized(ctx, o, *child, d.object, d.full)
			if isInvalid(err) {
				err = a.replaceRun(ctx, d, live)
			}
			return result, err
		case runNothing:
			return Result{Object: live, Operation: Unchanged}, nil
		}
		if err != nil {
			return Result{}, err
		}
	}
	return Result{}, fmt.Errorf("%s changes while it is reconciled", d)
}

// desireRun returns the desired Job with the annotations of [RunOnce]. It is not normalized again: that would take the
// annotations away if the Job has a copy of another object's metadata, and would lose the fields of [Child.CreateOnly].
func (a *applier) desireRun(o *owner, child *declared) (*desired, error) {
	object, full, err := child.kind.normalize(child.object, child.options)
	if err != nil {
		return nil, err
	}
	if child.content, err = runContent(child.kind, object); err != nil {
		return nil, err
	}
	for _, obj := range []*client.Object{&object, &full} {
		*obj = (*obj).DeepCopyObject().(client.Object)
		setAnnotation(*obj, record.Content, child.content)
		setAnnotation(*obj, record.RunOwner, string(o.reference.UID))
	}
	encoded, err := child.kind.comparer.AppendJSON(nil, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", child.kind.describe(object), err)
	}
	return &desired{
		kind: child.kind, object: object, full: full, sum: sumOf(encoded), owner: o, options: child.options, binding: child.binding, order: child.order, hold: child.hold, reads: child.reads,
	}, nil
}

// changeableJobFields are the fields of a Job's spec that a live Job takes over. The others are its content.
var changeableJobFields = []string{"activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend", "ttlSecondsAfterFinished"}

// runContent returns a hash of the part of a Job's spec that has to run only once.
func runContent(k *kind, obj client.Object) (string, error) {
	encoded, err := k.comparer.AppendJSON(nil, obj)
	if err != nil {
		return "", fmt.Errorf("%s: %w", k.describe(obj), err)
	}
	tree := map[string]any{}
	if err := utiljson.Unmarshal(encoded, &tree); err != nil {
		return "", fmt.Errorf("%s: %w", k.describe(obj), err)
	}
	spec, _ := tree["spec"].(map[string]any)
	for _, name := range changeableJobFields {
		delete(spec, name)
	}
	if encoded, err = json.Marshal(spec); err != nil {
		return "", fmt.Errorf("%s: %w", k.describe(obj), err)
	}
	hash := sumOf(encoded)
	return string(hash[:]), nil
}

func observe(live client.Object) (*jobState, error) {
	job, err := asJob(live)
	if err != nil {
		return nil, err
	}
	return observeJob(job), nil
}

func asJob(live client.Object) (*batchv1.Job, error) {
	switch live := live.(type) {
	case *batchv1.Job:
		return live, nil
	case *unstructured.Unstructured:
		job := &batchv1.Job{}
		return job, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, job)
	}
	return nil, fmt.Errorf("%T is not a Job", live)
}

// addRunFields adds what [RunOnce] needs to a Job that is sent: the suspension when it is created, and the finalizer
// until the owner has the record of its end.
func (d *desired) addRunFields(obj client.Object, method record.Method) {
	if !d.options.runOnce {
		return
	}
	if !d.runEnded() && !slices.Contains(obj.GetFinalizers(), record.RunOnce) {
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), record.RunOnce))
	}
	if method != record.ByCreate || setsSuspend(obj) {
		return
	}
	switch obj := obj.(type) {
	case *batchv1.Job:
		obj.Spec.Suspend = new(true)
	case *unstructured.Unstructured:
		if spec, ok := obj.Object["spec"].(map[string]any); ok {
			spec["suspend"] = true
		}
	}
	setAnnotation(obj, record.Held, "false")
}

// runEnded reports whether a Job of the desired content has completed or failed, as the owner's annotation says.
func (d *desired) runEnded() bool {
	last := record.ParseRun(d.owner.object.GetAnnotations()[record.Key(record.RunPrefix, d.owner.namespace, d.object)])
	return last.Ended(d.object.GetAnnotations()[record.Content])
}

// lacksRunFinalizer reports whether a live Job has lost the finalizer that it needs.
func (d *desired) lacksRunFinalizer(live client.Object) bool {
	return d.options.runOnce && !slices.Contains(live.GetFinalizers(), record.RunOnce) && !d.runEnded()
}

func setsSuspend(obj client.Object) bool {
	switch obj := obj.(type) {
	case *batchv1.Job:
		return obj.Spec.Suspend != nil
	case *unstructured.Unstructured:
		_, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "suspend") // a spec of another type is refused later
		return found
	}
	return false
}

// createRun creates a Job. It returns the live one if it exists after all.
func (a *applier) createRun(ctx context.Context, d *desired) (client.Object, error) {
	if d.hold != "" {
		return nil, d.held("is not created")
	}
	if err := a.slowDownByName(d.owner, d.kind, d.object, creating, d.sum); err != nil {
		return nil, err
	}
	if err := d.checkValues(); err != nil {
		return nil, err
	}
	if err := a.waitForFormerPods(ctx, d); err != nil {
		return nil, err
	}
	if err := a.requireCurrent(ctx, d.owner); err != nil { // a process that sees an old version of the owner does not know what has run
		return nil, err
	}
	answer, err := a.post(ctx, d)
	switch {
	case apierrors.IsAlreadyExists(err):
		live, readErr := a.readLive(ctx, d)
		if apierrors.IsNotFound(readErr) { // deleted in between: a lost race
			return nil, err
		}
		if readErr != nil {
			return nil, fmt.Errorf("read %s, which exists but is not in the cache: %w", d, readErr)
		}
		return live, nil
	case err != nil:
		return nil, err
	}
	answer = a.remember(ctx, d, answer)
	a.report(ctx, d.owner, d.kind, answer, outcomeCreated, "")
	return answer, nil
}

// waitForFormerPods returns a [*WaitingError] while a pod of an earlier Job of this name runs. Somebody has deleted
// that Job without its pods, or the garbage collector has not deleted them yet. Without a manager the pods are not
// read.
func (a *applier) waitForFormerPods(ctx context.Context, d *desired) error {
	name := d.object.GetName()
	if a.apiReader == nil || len(validation.IsValidLabelValue(name)) > 0 { // the API server refuses a Job of such a name
		return nil
	}
	pods, err := a.listLive(ctx, d.owner, podKind, d.object.GetNamespace(), client.MatchingLabels{batchv1.JobNameLabel: name})
	if err != nil {
		return fmt.Errorf("pods of a former %s: %w", d, err)
	}
	for i := range pods {
		phase, _, _ := unstructured.NestedString(pods[i].Object, "status", "phase") // the API server sets it
		controller := metav1.GetControllerOfNoCopy(&pods[i])
		isFormer := controller == nil || controller.Kind == d.kind.gvk.Kind && controller.Name == name
		if !isFormer || phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
			continue
		}
		return &WaitingError{reason: reasonPodsRunning, after: podRecheck, message: fmt.Sprintf(
			"%s is not created while Pod %s of a former Job of this name runs: wait for its end, or delete it", d, client.ObjectKeyFromObject(&pods[i]))}
	}
	return nil
}

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()

// undesiredRuns returns the keys of the records that this set has written on the owner about Jobs that it does not
// desire any more.
func undesiredRuns(o *owner, desired desiredNames) (keys []string) {
	if slices.ContainsFunc(desired.unbuilt, func(k *kind) bool { return k.gvk.GroupKind() == jobKind }) {
		return nil
	}
	for key, value := range o.object.GetAnnotations() {
		if !strings.HasPrefix(key, record.RunPrefix) {
			continue
		}
		last := record.ParseRun(value)
		if last.State != "" && o.isSet(last.Set) && !slices.ContainsFunc(desired.objects, func(d declared) bool {
			return d.options.runOnce && record.Key(record.RunPrefix, o.namespace, d.object) == key
		}) {
			keys = append(keys, key)
		}
	}
	return keys
}

// forgetRuns removes the records on the owner about Jobs that this set does not desire any more. It waits until the
// Jobs are gone. If another set of the pass desires a Job now, the record is left to that set.
func (s *set) forgetRuns(ctx context.Context, o *owner, desired desiredNames, found []written) error {
	for _, key := range undesiredRuns(o, desired) {
		if slices.ContainsFunc(found, func(w written) bool {
			return w.kind.gvk.GroupKind() == jobKind && record.Key(record.RunPrefix, o.namespace, w.object) == key
		}) {
			continue
		}
		value := ""
		if pass := passcontext.FromContext(ctx); pass != nil {
			if _, unknown := pass.AnnotationKeptBy(record.RunPrefix); unknown {
				continue
			}
			if set, kept := pass.AnnotationKeptBy(key); kept {
				last := record.ParseRun(o.object.GetAnnotations()[key])
				last.Set = set
				value = last.String()
			}
		}
		if err := s.applier.setRecord(ctx, o, key, value); err != nil {
			return err
		}
	}
	return nil
}

// startRun starts a Job that the owner's annotation names.
func (a *applier) startRun(ctx context.Context, d *desired, live client.Object) (client.Object, error) {
	answer := likeLive(d.kind, live)
	held := map[string]any{"annotations": map[string]any{record.Held: nil}}
	if err := a.patchLocked(ctx, d.owner, live, answer, held, map[string]any{"suspend": false}); err != nil {
		return nil, fmt.Errorf("start %s: %w", d, err)
	}
	a.writes.Record(answer)
	return answer, nil
}

// likeLive returns an empty object of the type of a live one, which may be unstructured although its kind is typed.
func likeLive(k *kind, live client.Object) client.Object {
	obj := reflect.New(reflect.TypeOf(live).Elem()).Interface().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj
}

// removeRunFinalizer removes the finalizer from a Job. It returns the updated Job, or nil if it is gone.
func (a *applier) removeRunFinalizer(ctx context.Context, o *owner, k *kind, live client.Object) (client.Object, error) {
	finalizers := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return f == record.RunOnce })
	answer := likeLive(k, live)
	switch err := a.patchLocked(ctx, o, live, answer, map[string]any{"finalizers": finalizers}, nil); {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("remove the finalizer from %s: %w", k.describe(live), err)
	case err != nil, live.GetDeletionTimestamp() != nil && len(finalizers) == 0:
		a.writes.Forget(live, client.ObjectKeyFromObject(live))
		return nil, nil
	case live.GetDeletionTimestamp() == nil: // a Job that is being deleted may be gone now
		a.writes.Record(answer)
	}
	return answer, nil
}

// removeFormerRunFinalizer removes the finalizer from a Job that is being deleted and that belongs to a former owner. Finalize
// should have done so before that owner was gone, but somebody may have removed the owner's finalizer by hand.
func (a *applier) removeFormerRunFinalizer(ctx context.Context, d *desired, live client.Object) (released bool, err error) {
	if _, former := errors.AsType[orphanError](d.owner.mayWrite(d, live)); !former ||
		live.GetDeletionTimestamp() == nil || !slices.Contains(live.GetFinalizers(), record.RunOnce) {
		return false, nil
	}
	if err := a.requireCurrent(ctx, d.owner); err != nil { // if our owner lives, its namesake does not
		return false, err
	}
	_, err = a.removeRunFinalizer(ctx, d.owner, d.kind, live)
	return err == nil, err
}

// replaceRun deletes a Job of another content. It is gone when its pods are.
func (a *applier) replaceRun(ctx context.Context, d *desired, live client.Object) error {
	if d.hold != "" {
		return d.held("is not replaced")
	}
	if _, err := a.postDryRun(ctx, d, ""); err != nil {
		return fmt.Errorf("%s is not replaced, since its new content would be refused: %w", d, err)
	}
	if err := a.requireCurrent(ctx, d.owner); err != nil {
		return err
	}
	if err := a.deleteRun(ctx, d, live, metav1.DeletePropagationForeground); err != nil {
		return err
	}
	a.report(ctx, d.owner, d.kind, live, outcomeRecreated, "")
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is replaced, since its content has changed", d)}
}

// deleteRun deletes a Job, unless it has changed since it was read.
func (a *applier) deleteRun(ctx context.Context, d *desired, live client.Object, policy metav1.DeletionPropagation) error {
	if err := deleteExactly(ctx, d.owner.client, live, policy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", d, err)
	}
	a.writes.Forget(live, client.ObjectKeyFromObject(live))
	return nil
}

func terminating(k *kind, live client.Object) *WaitingError {
	return &WaitingError{reason: reasonTerminating, message: k.describe(live) + " is being deleted"}
}

// runReady returns nil if a Job of the content is complete, a [*FailedError] if it has failed, and a [*WaitingError] otherwise.
func (a *applier) runReady(o *owner, child *declared) error {
	key := record.Key(record.RunPrefix, o.namespace, child.object)
	last, name := record.ParseRun(o.object.GetAnnotations()[key]), child.kind.describe(child.object)
	if last.Is(record.RunComplete, child.content) {
		return nil
	}
	if child.live != nil {
		job, err := asJob(child.live)
		if err != nil {
			return err
		}
		for i := range job.Status.Conditions {
			if c := &job.Status.Conditions[i]; c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				return &FailedError{reason: cmp.Or(c.Reason, reasonJobFailed), message: fmt.Sprintf("%s has failed: %s; change it, or delete it to run it again", name, c.Message)}
			}
		}
	}
	if last.Is(record.RunFailed, child.content) {
		return &FailedError{reason: reasonJobFailed, message: fmt.Sprintf(
			"%s has failed and is gone; change it, or remove the annotation %s of %s to run it again", name, key, o)}
	}
	return &WaitingError{reason: reasonJobRunning, message: name + " is not complete yet"}
}

// removeRunFinalizers removes the finalizers from all Jobs of an owner that is being deleted. It lists them past the cache,
// which may not show the latest. The owner's deletion may have orphaned some of them, so a search by controller does
// not find them all.
func (s *set) removeRunFinalizers(ctx context.Context, o *owner) error {
	for i, child := range s.children {
		if !child.options.runOnce {
			continue
		}
		kinds, err := s.kindsIn(o.client.Scheme())
		if err != nil {
			return err
		}
		jobs, err := s.applier.listLive(ctx, o, kinds[i].gvk, o.namespace)
		if err != nil {
			return err
		}
		for j := range jobs {
			job := &jobs[j]
			if job.GetAnnotations()[record.RunOwner] != string(o.reference.UID) || !slices.Contains(job.GetFinalizers(), record.RunOnce) {
				continue
			}
			if _, err := s.applier.removeRunFinalizer(ctx, o, kinds[i], job); err != nil {
				return err
			}
		}
		return nil // one list has the Jobs of all children
	}
	return nil
}
