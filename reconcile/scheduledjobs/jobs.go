package scheduledjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// Jobs is a step of package reconcile that creates one Job for each due time of a schedule of a T. Make it with [New],
// once and not in every reconcile. After its methods that return a *Jobs have been called, it is safe for concurrent
// use.
//
// It needs the verbs list, watch, create, patch and delete on Jobs. It also needs get, unless each ConcurrencyPolicy is
// Allow.
type Jobs[T client.Object] struct {
	fields func(T) (Spec, *Status)
	job    func(T, time.Time) (*batchv1.Job, error)
	suffix string
	clock  clock.PassiveClock

	minInterval time.Duration // the shortest allowed interval; 0 for no limit

	// SetupWithBuilder sets these.
	index string        // the name of the index of Jobs by owner; "" without a manager
	live  client.Reader // reads from the API server; nil without a manager

	writes *ownwrites.Writes // the API server's answers to our own writes, which the cache may not show yet
}

var (
	_ reconcile.Step[client.Object] = &Jobs[client.Object]{}
	_ reconcile.Watcher             = &Jobs[client.Object]{}
)

// New returns a step that creates the Jobs of a schedule.
//
// fields returns the schedule of a T, and a pointer to its status in the T. The reconciler writes that status. For a T
// without a schedule, fields returns a Spec with Suspend and without Schedule. Then Ready does not mention the step.
//
// job returns the Job of a scheduled time. The time is in the time zone of the schedule. The step calls job to create
// the Job, and never changes a Job that exists. The step sets the name of the Job, creates the Job in the namespace of
// the owner, and makes the owner its controller. job must have no side effects. If it returns an error, the run is
// retried.
func New[T client.Object](fields func(T) (Spec, *Status), job func(owner T, scheduled time.Time) (*batchv1.Job, error)) *Jobs[T] {
	return (&Jobs[T]{fields: fields, job: job}).WithClock(clock.RealClock{})
}

// WithNameSuffix adds a text to the names of the Jobs, between the name of the owner and the time, and returns the step. If an owner has
// several schedules, each needs another suffix. If owners of different kinds in one namespace may have the same name, their steps need
// different suffixes too. Do not change the suffix later: the Jobs with the former suffix would stay until their owner is deleted.
func (s *Jobs[T]) WithNameSuffix(suffix string) *Jobs[T] {
	s.suffix = suffix
	return s
}

// WithClock sets the clock, and returns the step. The default is clock.RealClock{}. A test may pass a clock that the test sets.
func (s *Jobs[T]) WithClock(c clock.PassiveClock) *Jobs[T] {
	s.clock, s.writes = c, ownwrites.New(c)
	return s
}

// WithMinInterval sets the shortest interval that a schedule may have, and returns the step. It is for runs that cost something. If a
// schedule has a shorter interval, the step is stalled, and no run starts: see [schedule.CheckInterval]. The default is 0, which allows
// every interval.
func (s *Jobs[T]) WithMinInterval(d time.Duration) *Jobs[T] {
	s.minInterval = d
	return s
}

// Reconcile starts the run that is due, and deletes the Jobs beyond the history limits. If there is nothing to do, it
// sends no request.
//
// It returns a success, and the next reconcile comes when the next run is due. Ready does not show this success, except with the
// reason Suspended, or with WaitingForJob while a run that is due waits for the end of another Job. A condition that the step
// reports ([reconcile.NamedStep.Reporting]) also shows the schedule, as in "0 2 * * *" in UTC. A Job that fails is not an error of
// the step. If the spec is invalid, the step is stalled. If another object has the name of a Job, the step does not change it, and
// returns an *ownedresources.OwnershipError.
//
// While a recorded time is in the future, no run starts, and the step waits with the reason ClockBehind. The message names
// the time until which no run starts. It says what to remove if the clock was ahead when the time was recorded.
func (s *Jobs[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	spec, status := s.fields(obj)
	o, err := newOwner(s, c, obj)
	if err != nil {
		return err
	}
	runs, err := s.list(ctx, o, status.LastJobName)
	if err != nil {
		return err
	}
	observe(status, runs)
	due, result := s.runSchedule(ctx, o, &spec, status, runs)
	if apierrors.IsConflict(result) {
		return result // the other result says when the next reconcile comes
	}
	successful, failed := spec.limits()
	return errors.Join(result, s.delete(ctx, o, append(abandoned(due, runs), expired(runs, successful, failed)...)))
}

// runSchedule starts the run that is due, if any. It returns the decision of package schedule and the result of the
// step.
func (s *Jobs[T]) runSchedule(ctx context.Context, o *owner, spec *Spec, status *Status, runs []run) (schedule.Decision, error) {
	if err := spec.validate(); err != nil {
		status.Stop()
		return schedule.Decision{}, reconcile.Stalled("", err)
	}
	if spec.Suspend {
		status.Stop()
		if spec.Schedule == "" {
			return schedule.Decision{}, nil
		}
		return schedule.Decision{}, reconcile.Success("Suspended", 0, "suspend is true")
	}
	if s.minInterval > 0 {
		if err := schedule.CheckInterval(spec.Schedule, s.minInterval); err != nil {
			status.Stop()
			return schedule.Decision{}, reconcile.Stalled("", err)
		}
	}
	now := s.clock.Now()
	due, err := decide(now, o.object.GetUID(), spec, status, runs)
	if err != nil {
		return due, reconcile.Stalled("", err)
	}
	scheduled := reconcile.SuccessUntil("", due.RequeueAfter(now), "%q in %s", spec.Schedule, timeZone(spec))
	switch due.Verdict {
	case schedule.ClockBehind:
		return due, reconcile.Wait(string(due.Verdict), due.RequeueAfter(now), "%s%s", status.ClockBehindReason(due), alsoDelete(runsAfter(now, runs)))
	case schedule.Start:
		waitsFor, err := s.start(ctx, o, spec, status, runs, due)
		if err != nil {
			return due, withDelay(err, scheduled)
		}
		if waitsFor != nil {
			return due, reconcile.SuccessUntil("WaitingForJob", due.RequeueAfter(now), "a run is due and waits for the end of Job %s", waitsFor.job.Name)
		}
	case schedule.TooLate:
		status.Record(due)
		reconcile.Eventf(ctx, o.object, corev1.EventTypeWarning, "TooLate",
			"The run that was due at %s is not started: %s", timestamp(due.ScheduledTime), due.TooLateReason())
	}
	return due, scheduled
}

// start starts the run that is due. If another Job has to end first, start returns that Job instead.
//
// The requests are sent in an order that makes each run happen once. First the Job is created, suspended. Then the
// status records the run, with the resource version. Then the Job is started. After a crash in between, the run has
// either not started or is recorded. It stays recorded, even if the Job has finished and its TTL has removed it.
func (s *Jobs[T]) start(ctx context.Context, o *owner, spec *Spec, status *Status, runs []run, due schedule.Decision) (waitsFor *run, err error) {
	policy := cmp.Or(spec.ConcurrencyPolicy, defaultConcurrencyPolicy)
	if policy != batchv1.AllowConcurrent {
		if runs, err = s.withLast(ctx, o, status, runs); err != nil {
			return nil, err
		}
	}
	plan := planStart(due.ScheduledTime, policy, runs)
	if plan.waitsFor != nil {
		if plan.waitsFor.state == held && status.forget(plan.waitsFor) { // somebody has deleted the suspended Job before it was started
			err = reconcile.Checkpoint(ctx)
		}
		return plan.waitsFor, err
	}
	var job *batchv1.Job
	if plan.held != nil {
		job = plan.held.job
	} else if job, err = s.create(ctx, o, spec, due.ScheduledTime); err != nil {
		return nil, err
	}
	status.Record(due)
	status.LastJobName, status.LastJobUID = job.Name, job.UID
	if err := reconcile.Checkpoint(ctx); err != nil {
		return nil, err
	}
	for i := range plan.replaced {
		if err := s.replace(ctx, o, &plan.replaced[i]); err != nil {
			return nil, err
		}
	}
	if err := s.release(ctx, o, job); err != nil {
		return nil, err
	}
	reconcile.Eventf(ctx, o.object, corev1.EventTypeNormal, "Started", "Started Job %s, which was due at %s", job.Name, timestamp(due.ScheduledTime))
	return nil, nil
}

// replace deletes a running Job, so that a later run can start.
func (s *Jobs[T]) replace(ctx context.Context, o *owner, r *run) error {
	uid := r.job.UID
	err := o.client.Delete(ctx, r.job, client.Preconditions{UID: &uid}, background)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Job %s, which a later run replaces: %w", r.job.Name, err)
	}
	if err == nil {
		reconcile.Eventf(ctx, o.object, corev1.EventTypeNormal, "Replaced", "Deleted Job %s, which had not finished", r.job.Name)
	}
	return nil
}

// delayedError is an error of a step that also asks for a reconcile when the next run is due.
type delayedError struct{ err, scheduled error }

// withDelay returns an error that means the same as err, and also has the delay of scheduled.
func withDelay(err, scheduled error) error { return &delayedError{err, scheduled} }

func (e *delayedError) Error() string   { return e.err.Error() }
func (e *delayedError) Unwrap() []error { return []error{e.err, e.scheduled} }

func timeZone(spec *Spec) string {
	if spec.TimeZone == "" {
		return "UTC"
	}
	return spec.TimeZone
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// emptyOf returns a new T.
func emptyOf[T client.Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// isIndexConflict reports whether an index with this name exists already. client-go has no error type for this.
func isIndexConflict(err error) bool { return strings.Contains(err.Error(), "indexer conflict") }
