package feature

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/heldjob"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// The reasons in conditions about a Job that runs once.
const (
	ReasonJobRunning  = "JobRunning"
	ReasonJobFailed   = "JobFailed"
	ReasonPodsRunning = "FormerPodsRunning"

	// PodRecheck is the delay before the pods of an earlier Job are read again. They are not watched.
	PodRecheck = 10 * time.Second
)

func runOnceMistake(o *owned.Options, kind schema.GroupKind) error {
	switch {
	case !o.RunOnce:
		return nil
	case kind != schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return errors.New("RunOnce is for a Job: take it away, or put what has to run once into a Job")
	case o.ReadyCondition != "":
		return errors.New("it has RunOnce and ReadyWhen: it is ready when the Job is complete; take ReadyWhen away")
	case o.Recreate:
		return errors.New("it has RunOnce and Recreate: RunOnce replaces the Job itself; take Recreate away")
	}
	return nil
}

// JobState is the observed state of a live Job.
type JobState struct {
	UID              types.UID
	content          string // the value of the annotation opblocks.dev/content; empty if somebody has removed it
	deleting, held   bool
	complete, failed bool
	expired          bool // the Job is being deleted because of its time to live
	finalizer        bool // the Job has the finalizer opblocks.dev/run-once
	collected        bool // the garbage collector deletes or orphans the Job's pods before the Job is gone
}

func observeJob(job *batchv1.Job) *JobState {
	s := &JobState{
		UID: job.UID, content: job.Annotations[record.Content], deleting: job.DeletionTimestamp != nil,
		held: heldjob.IsHeld(job), finalizer: slices.Contains(job.Finalizers, record.RunOnce), collected: heldjob.IsCollected(job),
	}
	if end := heldjob.End(job); end != nil {
		s.complete, s.failed = end.Type == batchv1.JobComplete, end.Type == batchv1.JobFailed
		if ttl := job.Spec.TTLSecondsAfterFinished; s.deleting && ttl != nil {
			s.expired = !job.DeletionTimestamp.Time.Before(end.LastTransitionTime.Add(time.Duration(*ttl) * time.Second))
		}
	}
	return s
}

// RunAction is what has to be done next for a Job of [ownedresources.Child.RunOnce].
type RunAction string

// The actions.
const (
	RunCreate         RunAction = "create the Job"
	RunName           RunAction = "name the Job in the owner's annotation"
	RunStart          RunAction = "start the Job"
	RunApply          RunAction = "apply the Job as any other child"
	RunRecordComplete RunAction = "record that it is complete"
	RunRecordFailed   RunAction = "record that it has failed"
	RunRelease        RunAction = "remove the finalizer"
	RunReplace        RunAction = "delete the Job, since its content has changed"
	RunDiscard        RunAction = "delete the Job, which was never started and is not needed"
	RunDeletePods     RunAction = "delete the pods before the Job, which somebody has deleted"
	RunWait           RunAction = "wait until the Job is gone"
	RunIdentify       RunAction = "apply the Job, to find out whether its content is this one"
	RunNothing        RunAction = "do nothing: it has run"
)

// NextRunAction decides what to do next for a Job whose desired spec has this content hash. If no live Job exists, job is nil. last is what
// the owner's annotation records about the last run.
func NextRunAction(last record.Run, content string, job *JobState) RunAction {
	if job == nil {
		if last.Ended(content) {
			return RunNothing
		}
		return RunCreate
	}
	same := job.content == content
	switch {
	case job.deleting && !job.finalizer && last.Ended(content):
		return RunNothing
	case job.deleting && !job.finalizer:
		return RunWait
	case same && job.complete && !last.Is(record.RunComplete, content):
		return RunRecordComplete
	case same && job.failed && job.expired && !last.Is(record.RunFailed, content):
		return RunRecordFailed
	case job.deleting && !job.complete && !job.failed && !job.held && !job.collected:
		return RunDeletePods
	case job.deleting:
		return RunRelease
	case job.content == "":
		return RunIdentify
	case !same:
		return RunReplace
	case last.Ended(content) && job.held:
		return RunDiscard
	case last.Ended(content) && job.finalizer:
		return RunRelease
	case last.Ended(content):
		return RunNothing
	case job.held && !last.Names(content, job.UID):
		return RunName
	case job.held:
		return RunStart
	}
	return RunApply
}

// changeableJobFields are the fields of a Job's spec whose change does not start a new run. The hash of the content does not cover them.
var changeableJobFields = []string{"activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend", "ttlSecondsAfterFinished"}

// RunContent returns a hash of the part of a Job's spec that must run only once.
func RunContent(k *owned.Kind, obj client.Object) (string, error) {
	encoded, err := k.Comparer.AppendJSON(nil, obj)
	if err != nil {
		return "", fmt.Errorf("%s: %w", k.Describe(obj), err)
	}
	tree := map[string]any{}
	if err := utiljson.Unmarshal(encoded, &tree); err != nil {
		return "", fmt.Errorf("%s: %w", k.Describe(obj), err)
	}
	spec, _ := tree["spec"].(map[string]any)
	for _, name := range changeableJobFields {
		delete(spec, name)
	}
	if encoded, err = json.Marshal(spec); err != nil {
		return "", fmt.Errorf("%s: %w", k.Describe(obj), err)
	}
	hash := owned.SumOf(encoded)
	return string(hash[:]), nil
}

// Observe returns the state of a live Job, typed or unstructured.
func Observe(live client.Object) (*JobState, error) {
	job, err := AsJob(live)
	if err != nil {
		return nil, err
	}
	return observeJob(job), nil
}

// AsJob returns a typed or unstructured Job as a typed one.
func AsJob(live client.Object) (*batchv1.Job, error) {
	switch live := live.(type) {
	case *batchv1.Job:
		return live, nil
	case *unstructured.Unstructured:
		job := &batchv1.Job{}
		return job, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, job)
	}
	return nil, fmt.Errorf("%T is not a Job", live)
}

// AddRunFields adds what [ownedresources.Child.RunOnce] needs to a Job that is to be sent. A Job that is created is suspended. It has a
// finalizer until the owner's annotation records the end of the run.
func AddRunFields(d *owned.Desired, obj client.Object, method record.Method) {
	if !d.Options.RunOnce {
		return
	}
	if !runEnded(d) && !slices.Contains(obj.GetFinalizers(), record.RunOnce) {
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), record.RunOnce))
	}
	if method != record.ByCreate || setsSuspend(obj) {
		return
	}
	heldjob.Hold(obj)
}

// runEnded reports whether the owner's annotation records that a Job of the desired content has completed or failed.
func runEnded(d *owned.Desired) bool {
	last := record.ParseRun(d.Owner.Object.GetAnnotations()[record.Key(record.RunPrefix, d.Owner.Namespace, d.Object)])
	return last.Ended(d.Object.GetAnnotations()[record.Content])
}

// LacksRunFinalizer reports whether a live Job needs the finalizer opblocks.dev/run-once and does not have it.
func LacksRunFinalizer(d *owned.Desired, live client.Object) bool {
	return d.Options.RunOnce && !slices.Contains(live.GetFinalizers(), record.RunOnce) && !runEnded(d)
}

func setsSuspend(obj client.Object) bool {
	switch obj := obj.(type) {
	case *batchv1.Job:
		return obj.Spec.Suspend != nil
	case *unstructured.Unstructured:
		_, found, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "suspend") // if the spec is not a map, the API server refuses it later
		return found
	}
	return false
}

// RunReady returns nil if a Job with the desired content has completed, a [*owned.FailedError] if it has failed, and a
// [*owned.WaitingError] otherwise.
func RunReady(o *owned.Owner, child *owned.Declared) error {
	key := record.Key(record.RunPrefix, o.Namespace, child.Object)
	last, name := record.ParseRun(o.Object.GetAnnotations()[key]), child.Kind.Describe(child.Object)
	if last.Is(record.RunComplete, child.Content) {
		return nil
	}
	if child.Live != nil {
		job, err := AsJob(child.Live)
		if err != nil {
			return err
		}
		if end := heldjob.End(job); end != nil && end.Type == batchv1.JobFailed {
			return owned.NewFailed(cmp.Or(end.Reason, ReasonJobFailed), fmt.Sprintf("%s has failed: %s; change it, or delete it to run it again", name, end.Message))
		}
	}
	if last.Is(record.RunFailed, child.Content) {
		return owned.NewFailed(ReasonJobFailed, fmt.Sprintf(
			"%s has failed and is gone; change it, or remove the annotation %s of %s to run it again", name, key, o))
	}
	return owned.NewWaiting(ReasonJobRunning, 0, name+" is not complete yet")
}
