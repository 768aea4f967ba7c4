package scheduledjobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/heldjob"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// background lets the garbage collector delete the pods of a Job after the Job. By default, the API server would keep the
// pods of a deleted Job.
var background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// owner is the reconciled object, which owns the Jobs.
type owner struct {
	client     client.Client
	object     client.Object
	fieldOwner client.FieldOwner
	build      func(scheduled time.Time) (*batchv1.Job, error)
}

func newOwner[T client.Object](s *Jobs[T], c client.Client, obj T) (*owner, error) {
	kind, err := apiutil.GVKForObject(obj, c.Scheme())
	switch {
	case err != nil:
		return nil, fmt.Errorf("kind of the owner: %w: add its types to the scheme", err)
	case obj.GetNamespace() == "":
		return nil, reconcile.Stalled("NoNamespace", fmt.Errorf("%s %s has no namespace: its Jobs would have none", kind.Kind, obj.GetName()))
	}
	return &owner{client: c, object: obj, fieldOwner: fieldmanager.For(kind), build: func(scheduled time.Time) (*batchv1.Job, error) {
		job, err := s.job(obj, scheduled)
		if err == nil && job == nil {
			err = reconcile.Stalled("NoJob", errors.New("the operator built no Job"))
		}
		return job, err
	}}, nil
}

// key returns the namespace and name of a Job.
func (o *owner) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.object.GetNamespace(), Name: name}
}

// list returns the runs of the owner, from the cache and from our own writes that the cache does not show yet. last is the
// name of the last Job, which is the only one that the cache may lack.
func (s *Jobs[T]) list(ctx context.Context, o *owner, last string) ([]run, error) {
	options := []client.ListOption{client.InNamespace(o.object.GetNamespace())}
	if s.index != "" {
		options = append(options, client.MatchingFields{s.index: string(o.object.GetUID())})
	}
	unseen := s.writes.Unseen(&batchv1.Job{}, o.key(last))
	jobs, err := reconcile.List[*batchv1.Job](ctx, o.client, &batchv1.JobList{}, options...)
	if err != nil {
		return nil, err
	}
	var runs []run
	// If the event of our last write of a Job came after the list, the older Job is used. The API server refuses a write that follows from it.
	for cached := range jobs {
		runs = s.appendRun(runs, o, s.writes.Newer(s.writes.Unseen(cached, client.ObjectKeyFromObject(cached)), cached))
	}
	if !slices.ContainsFunc(runs, func(r run) bool { return r.job.Name == last }) {
		runs = s.appendRun(runs, o, unseen)
	}
	return runs, nil
}

// appendRun appends the run of obj to runs, if obj is a Job of the owner's schedule. obj may be nil.
func (s *Jobs[T]) appendRun(runs []run, o *owner, obj client.Object) []run {
	job, ok := obj.(*batchv1.Job)
	if !ok || !isControlledBy(job, o.object.GetUID()) {
		return runs
	}
	if r, isRun := runOf(job, s.suffix); isRun {
		return append(runs, r)
	}
	return runs
}

// withLast returns the runs, including the run that was started last. If its Job is not in the cache, withLast reads
// it from the API server. Otherwise a process that has just started would assume that the run has finished.
func (s *Jobs[T]) withLast(ctx context.Context, o *owner, status *Status, runs []run) ([]run, error) {
	known := slices.ContainsFunc(runs, func(r run) bool { return r.job.UID == status.LastJobUID })
	if known || status.LastJobName == "" || s.live == nil {
		return runs, nil
	}
	job := &batchv1.Job{}
	switch err := s.live.Get(ctx, o.key(status.LastJobName), job); {
	case apierrors.IsNotFound(err):
		return runs, nil
	case err != nil:
		return nil, fmt.Errorf("read the last Job %s: %w", status.LastJobName, err)
	}
	return s.appendRun(runs, o, job), nil
}

// create creates the Job of a run. The Job is suspended at first.
func (s *Jobs[T]) create(ctx context.Context, o *owner, spec *Spec, scheduled time.Time) (*batchv1.Job, error) {
	parsed, err := schedule.Parse(spec.Schedule, spec.TimeZone)
	if err != nil {
		return nil, err
	}
	built, err := o.build(scheduled.In(parsed.Location()))
	if err != nil {
		return nil, err
	}
	job := built.DeepCopy() // the function may return a part of the owner, which is in the cache
	if job.Namespace != "" && job.Namespace != o.object.GetNamespace() {
		return nil, reconcile.Stalled("OtherNamespace", fmt.Errorf("the Job is for namespace %s: it has to be in that of its owner", job.Namespace))
	}
	job.Namespace, job.Name, job.GenerateName = o.object.GetNamespace(), jobName(o.object.GetName(), s.suffix, scheduled), ""
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, record.Scheduled, timestamp(scheduled))
	heldjob.Hold(job)
	if err := controllerutil.SetControllerReference(o.object, job, o.client.Scheme()); err != nil {
		return nil, err
	}
	if written := s.appendRun(nil, o, s.writes.Unseen(job, o.key(job.Name))); len(written) == 1 && written[0].state == held {
		return written[0].job, nil // an earlier reconcile has created it, and could not write the status
	}
	existing := &batchv1.Job{}
	switch err := o.client.Get(ctx, o.key(job.Name), existing, client.UnsafeDisableDeepCopy); {
	case err == nil:
		return nil, &ownedresources.OwnershipError{Kind: "Job", Name: o.key(job.Name), Owner: metav1.GetControllerOf(existing)}
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	if err := o.client.Create(ctx, job, o.fieldOwner); err != nil {
		return nil, fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	s.writes.Record(job.DeepCopy())
	return job, nil
}

// release starts a suspended Job. If the Job was started or deleted since it was read, the error is a conflict.
func (s *Jobs[T]) release(ctx context.Context, o *owner, job *batchv1.Job) error {
	answer := &batchv1.Job{}
	if err := heldjob.Start(ctx, o.client, job, answer, o.fieldOwner); err != nil {
		return err
	}
	s.writes.Record(answer)
	return nil
}

// delete deletes Jobs that finished or were never started.
func (s *Jobs[T]) delete(ctx context.Context, o *owner, runs []run) error {
	if len(runs) == 0 {
		return nil
	}
	// Before Jobs are deleted, the status has to show what they did. The object also has to be current, because an old
	// version may have other limits.
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	var errs []error
	for i := range runs {
		job := runs[i].job
		uid, version := job.UID, job.ResourceVersion // if a suspended Job was started after it was read, it must not be deleted
		err := o.client.Delete(ctx, job, client.Preconditions{UID: &uid, ResourceVersion: &version}, background)
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete Job %s: %w", job.Name, err))
		}
	}
	return errors.Join(errs...)
}
