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
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// AnnotationContent is set on the Jobs of [RunOnce]. Its value is a hash of what has to run only once.
	AnnotationContent = "opblocks.dev/content"
	// RunOncePrefix and the name of a Job of [RunOnce] are the key of an annotation of the owner. Its value is
	// v1:started:HASH:UID, v1:complete:HASH or v1:failed:HASH, with the Job's [AnnotationContent] and its UID.
	RunOncePrefix = "run-once.opblocks.dev/"
	// RunOnceFinalizer is a finalizer of the Jobs of [RunOnce]. It is removed when the owner's annotation says how the Job
	// has ended.
	RunOnceFinalizer = "opblocks.dev/run-once"

	// annotationHeld is on a Job that is suspended because the owner's annotation does not name it yet.
	annotationHeld = "opblocks.dev/held"
	// annotationRunOwner is the UID of a Job's owner. It finds the Job if the owner's deletion orphans it.
	annotationRunOwner = "opblocks.dev/run-owner"

	reasonJobRunning = "JobRunning"
	reasonJobFailed  = "JobFailed"
)

// RunOnce runs a Job once for each content, also if its time to live removes it or the operator crashes. The content is the
// spec of the Job without backoffLimit, activeDeadlineSeconds, parallelism, suspend and ttlSecondsAfterFinished. The child is
// ready when the Job is complete, and stays so when the Job is gone; so other children can come after it ([Child.After]).
//
//	migration := ownedresources.Build(migrationJob, ownedresources.RunOnce())
//	ownedresources.Ensure(migration, ownedresources.Build(deployment).After(migration))
//
// If the content changes, the Job is deleted, also while it runs. When its pods are gone, the new one is created: there are
// never two at once. The former content counts as new if it comes back.
//
// A Job that fails is shown by a [*FailedError] and is not repeated, not even after its time to live, until the content
// changes or somebody deletes the failed Job. A Job that is deleted while it runs is created again. To repeat a Job that has
// completed, or that has failed and is gone, delete it if it is still there, and remove the owner's annotation [RunOncePrefix]
// with the name of the Job.
//
// The Job is created suspended. It is started when the annotation of the owner names it, which is written with the owner's
// resource version as precondition. So no process that sees the past, and no replica that is not the leader any more, starts
// it again. If the Job sets suspend itself, as one for a queue does, it is created as it is.
//
// The Job has the finalizer [RunOnceFinalizer] until the owner's annotation says how it has ended. The set gets a finalizer of
// its own, which takes it off when the owner is deleted: see [ChildSet.FinalizerName]. The operator needs the verb patch on
// the owner.
//
// RunOnce decides when the child is ready and when the Job is replaced, so it excludes [ReadyWhen] and [Recreate].
func RunOnce() ChildOption {
	return func(o *childOptions) { o.runOnce = true }
}

func (o *childOptions) runOnceMistake(kind schema.GroupKind) error {
	switch {
	case !o.runOnce:
		return nil
	case kind != schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return errors.New("RunOnce is for a Job: take it away, or put what has to run once into a Job")
	case o.readyCondition != "":
		return errors.New("it has RunOnce and ReadyWhen: it is ready when the Job is complete; take ReadyWhen away")
	case o.recreate:
		return errors.New("it has RunOnce and Recreate: RunOnce replaces the Job itself; take Recreate away")
	}
	return nil
}

// runEnd is how far a run has come, as the owner's annotation says.
type runEnd string

const (
	runStarted  runEnd = "started"
	runComplete runEnd = "complete"
	runFailed   runEnd = "failed"
)

// runRecord is the parsed annotation of an owner about a Job. The zero value is that of a Job that has never run.
type runRecord struct {
	end     runEnd
	content string
	uid     types.UID // of a Job that was started
}

const runRecordVersion = "v1"

func (r runRecord) String() string {
	value := runRecordVersion + ":" + string(r.end) + ":" + r.content
	if r.end == runStarted {
		value += ":" + string(r.uid)
	}
	return value
}

// parseRunRecord returns the zero value for a value that is not well-formed.
func parseRunRecord(value string) (r runRecord) {
	parts := strings.SplitN(value, ":", 4)
	if len(parts) < 3 || parts[0] != runRecordVersion {
		return r
	}
	switch end := runEnd(parts[1]); {
	case end == runStarted && len(parts) == 4:
		return runRecord{end, parts[2], types.UID(parts[3])}
	case (end == runComplete || end == runFailed) && len(parts) == 3:
		return runRecord{end: end, content: parts[2]}
	}
	return r
}

// ended reports whether a Job of this content has completed or failed.
func (r runRecord) ended(content string) bool {
	return r.content == content && (r.end == runComplete || r.end == runFailed)
}

func (r runRecord) is(end runEnd, content string) bool { return r.end == end && r.content == content }

// jobState is what is observed of a live Job.
type jobState struct {
	uid              types.UID
	content          string // empty if somebody has removed the annotation
	deleting, held   bool
	complete, failed bool
	expired          bool // it is being deleted because of its time to live
	finalizer        bool // that of this package
	collected        bool // the garbage collector deletes or orphans its pods before the Job goes
}

func observeJob(job *batchv1.Job) *jobState {
	s := &jobState{
		uid: job.UID, content: job.Annotations[AnnotationContent], deleting: job.DeletionTimestamp != nil,
		held: job.Annotations[annotationHeld] != "",
	}
	for _, f := range job.Finalizers {
		s.finalizer = s.finalizer || f == RunOnceFinalizer
		s.collected = s.collected || f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status != corev1.ConditionTrue || c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed {
			continue
		}
		s.complete, s.failed = s.complete || c.Type == batchv1.JobComplete, s.failed || c.Type == batchv1.JobFailed
		if ttl := job.Spec.TTLSecondsAfterFinished; s.deleting && ttl != nil {
			s.expired = !job.DeletionTimestamp.Time.Before(c.LastTransitionTime.Add(time.Duration(*ttl) * time.Second))
		}
	}
	return s
}

// runAction is what has to be done next for a Job of [RunOnce].
type runAction string

const (
	runCreate         runAction = "create the Job"
	runClaim          runAction = "name the Job in the owner's annotation"
	runStart          runAction = "start the Job"
	runApply          runAction = "apply the Job as any other child"
	runRecordComplete runAction = "record that it is complete"
	runRecordFailed   runAction = "record that it has failed"
	runRelease        runAction = "remove the finalizer"
	runReplace        runAction = "delete the Job, since its content has changed"
	runDiscard        runAction = "delete the Job, which was never started and is not needed"
	runDeletePods     runAction = "delete the pods before the Job, which somebody has deleted"
	runWait           runAction = "wait until the Job is gone"
	runIdentify       runAction = "apply the Job, to find out whether its content is this one"
	runNothing        runAction = "do nothing: it has run"
)

// nextRunAction decides what has to be done for a Job of this content. job is nil if there is none.
func nextRunAction(record runRecord, content string, job *jobState) runAction {
	if job == nil {
		if record.ended(content) {
			return runNothing
		}
		return runCreate
	}
	same := job.content == content
	switch {
	case job.deleting && !job.finalizer && record.ended(content):
		return runNothing
	case job.deleting && !job.finalizer:
		return runWait
	case same && job.complete && !record.is(runComplete, content):
		return runRecordComplete
	case same && job.failed && job.expired && !record.is(runFailed, content):
		return runRecordFailed
	case job.deleting && !job.complete && !job.failed && !job.held && !job.collected:
		return runDeletePods
	case job.deleting:
		return runRelease
	case job.content == "":
		return runIdentify
	case !same:
		return runReplace
	case record.ended(content) && job.held:
		return runDiscard
	case record.ended(content) && job.finalizer:
		return runRelease
	case record.ended(content):
		return runNothing
	case job.held && record != (runRecord{runStarted, content, job.uid}):
		return runClaim
	case job.held:
		return runStart
	}
	return runApply
}

// maxRunActions is more than the number of actions that follow each other in one reconcile.
const maxRunActions = 8

// runOnce does what has to be done for a Job of [RunOnce]. The result has the live object, or none if the Job has run and is
// gone. Whether it is ready is another question: see [applier.runReady].
func (a *applier) runOnce(ctx context.Context, o *owner, child *declared) (Result, error) {
	d, err := a.desireRun(o, child)
	if err != nil {
		return Result{}, err
	}
	live, err := a.read(ctx, o, d.kind, d.object)
	if err != nil {
		return Result{}, err
	}
	key := recordKey(RunOncePrefix, o, d.object)
	for range maxRunActions {
		var job *jobState
		if live != nil {
			if ref := metav1.GetControllerOfNoCopy(live); ref == nil || ref.UID != o.reference.UID {
				switch released, err := a.releaseFormer(ctx, d, live); {
				case err != nil:
					return Result{}, err
				case released:
					live = nil
					continue
				}
				return a.apply(ctx, o, *child) // it is refused, adopted, or waited for
			}
			if job, err = observe(live); err != nil {
				return Result{}, err
			}
		}
		record := parseRunRecord(o.object.GetAnnotations()[key])
		switch action := nextRunAction(record, child.content, job); action {
		case runCreate:
			live, err = a.createRun(ctx, d)
		case runClaim:
			err = a.setRecord(ctx, o, key, runRecord{runStarted, child.content, job.uid}.String())
		case runStart:
			live, err = a.startRun(ctx, d, live)
		case runRecordComplete:
			err = a.setRecord(ctx, o, key, runRecord{end: runComplete, content: child.content}.String())
		case runRecordFailed:
			err = a.setRecord(ctx, o, key, runRecord{end: runFailed, content: child.content}.String())
		case runRelease:
			live, err = a.releaseRun(ctx, o, d.kind, live)
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
			return a.apply(ctx, o, *child)
		case runIdentify: // it was made without RunOnce, or somebody has removed the annotation
			result, err := a.apply(ctx, o, *child)
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

// desireRun sets the annotations of [RunOnce] on the desired Job, in a copy.
func (a *applier) desireRun(o *owner, child *declared) (*desired, error) {
	object, full, err := child.kind.normalize(child.object, child.options)
	if err != nil {
		return nil, err
	}
	if child.content, err = runContent(child.kind, object); err != nil {
		return nil, err
	}
	for _, obj := range []*client.Object{&child.object, &object, &full} {
		*obj = (*obj).DeepCopyObject().(client.Object)
		setAnnotation(*obj, AnnotationContent, child.content)
		setAnnotation(*obj, annotationRunOwner, string(o.reference.UID))
	}
	encoded, err := child.kind.comparer.AppendJSON(nil, object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", child.kind.describe(object), err)
	}
	return &desired{
		kind: child.kind, object: object, full: full, sum: sumOf(encoded), owner: o, options: child.options, order: child.order, hold: child.hold,
	}, nil
}

// changeableJobFields are the fields of a Job's spec that a live Job takes over. The others are its content.
var changeableJobFields = []string{"activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend", "ttlSecondsAfterFinished"}

// runContent returns a hash of what of a Job has to run only once.
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

// addRunFields adds to a Job that is sent what [RunOnce] needs: the finalizer until its end is recorded, and before that, at
// its creation, the suspension.
func (d *desired) addRunFields(obj client.Object, method writeMethod) {
	if !d.options.runOnce {
		return
	}
	if !d.runEnded() && !slices.Contains(obj.GetFinalizers(), RunOnceFinalizer) {
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), RunOnceFinalizer))
	}
	if method != byCreate || setsSuspend(obj) {
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
	setAnnotation(obj, annotationHeld, "until its owner names it")
}

// runEnded reports whether a Job of the desired content has completed or failed, as the owner's annotation says.
func (d *desired) runEnded() bool {
	record := parseRunRecord(d.owner.object.GetAnnotations()[recordKey(RunOncePrefix, d.owner, d.object)])
	return record.ended(d.object.GetAnnotations()[AnnotationContent])
}

// lacksRunFinalizer reports whether a live Job has lost the finalizer that it needs.
func (d *desired) lacksRunFinalizer(live client.Object) bool {
	return d.options.runOnce && !slices.Contains(live.GetFinalizers(), RunOnceFinalizer) && !d.runEnded()
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
	if err := d.checkKeys(); err != nil {
		return nil, err
	}
	if err := a.requireCurrent(ctx, d.owner); err != nil { // a process that sees the past does not know what has run
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
	a.record(d.owner, d.kind, answer, outcomeCreated, "")
	return answer, nil
}

// startRun starts a Job that the owner's annotation names.
func (a *applier) startRun(ctx context.Context, d *desired, live client.Object) (client.Object, error) {
	answer, err := a.patchExactly(ctx, d.owner, d.kind, live, map[string]any{"annotations": map[string]any{annotationHeld: nil}},
		map[string]any{"suspend": false})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", d, err)
	}
	a.writes.Record(answer)
	return answer, nil
}

// releaseRun removes the finalizer from a Job. It returns the Job as it is then, or nil if it is gone.
func (a *applier) releaseRun(ctx context.Context, o *owner, k *kind, live client.Object) (client.Object, error) {
	finalizers := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return f == RunOnceFinalizer })
	answer, err := a.patchExactly(ctx, o, k, live, map[string]any{"finalizers": finalizers}, nil)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("remove the finalizer from %s: %w", k.describe(live), err)
	case err != nil, live.GetDeletionTimestamp() != nil && len(finalizers) == 0:
		a.writes.Forget(live, client.ObjectKeyFromObject(live))
		return nil, nil
	case live.GetDeletionTimestamp() == nil: // one that is being deleted may be gone by now
		a.writes.Record(answer)
	}
	return answer, nil
}

// releaseFormer removes the finalizer from a Job that is being deleted and that belongs to a deleted object of the owner's
// name. The finalizer of that object would have done so, but somebody may have removed it by hand.
func (a *applier) releaseFormer(ctx context.Context, d *desired, live client.Object) (released bool, err error) {
	if _, former := errors.AsType[orphanError](d.owner.mayWrite(d, live)); !former ||
		live.GetDeletionTimestamp() == nil || !slices.Contains(live.GetFinalizers(), RunOnceFinalizer) {
		return false, nil
	}
	if err := a.requireCurrent(ctx, d.owner); err != nil { // if our owner lives, its namesake does not
		return false, err
	}
	_, err = a.releaseRun(ctx, d.owner, d.kind, live)
	return err == nil, err
}

// patchExactly sends a merge patch of the metadata and the spec, with the UID and the resource version as preconditions.
func (a *applier) patchExactly(ctx context.Context, o *owner, k *kind, live client.Object, metadata, spec map[string]any) (client.Object, error) {
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	content := map[string]any{"metadata": metadata}
	if spec != nil {
		content["spec"] = spec
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	answer := reflect.New(reflect.TypeOf(live).Elem()).Interface().(client.Object)
	answer.GetObjectKind().SetGroupVersionKind(k.gvk)
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	return answer, o.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.fieldManager)
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
	a.record(d.owner, d.kind, live, outcomeRecreated, "")
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is replaced, since its content has changed", d)}
}

// deleteRun deletes a Job, unless it has changed since it was read.
func (a *applier) deleteRun(ctx context.Context, d *desired, live client.Object, policy metav1.DeletionPropagation) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := d.owner.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(policy))
	if client.IgnoreNotFound(err) != nil {
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
	key := recordKey(RunOncePrefix, o, child.object)
	record, name := parseRunRecord(o.object.GetAnnotations()[key]), child.kind.describe(child.object)
	if record.is(runComplete, child.content) {
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
	if record.is(runFailed, child.content) {
		return &FailedError{reason: reasonJobFailed, message: fmt.Sprintf(
			"%s has failed and is gone; change it, or remove the annotation %s of %s to run it again", name, key, o)}
	}
	return &WaitingError{reason: reasonJobRunning, message: name + " is not complete yet"}
}

// releaseRuns removes the finalizers from all Jobs of an owner that is being deleted. It lists them past the cache, which may
// not show the latest. The owner's deletion may have orphaned them, so their controller does not find them all.
func (s *ChildSet[T]) releaseRuns(ctx context.Context, o *owner) error {
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
			if job.GetAnnotations()[annotationRunOwner] != string(o.reference.UID) || !slices.Contains(job.GetFinalizers(), RunOnceFinalizer) {
				continue
			}
			if _, err := s.applier.releaseRun(ctx, o, kinds[i], job); err != nil {
				return err
			}
		}
		return nil // one list has the Jobs of all children
	}
	return nil
}
