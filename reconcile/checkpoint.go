package reconcile

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Checkpoint makes it safe to act outside of the cluster. Call it in Reconcile or Finalize of a step, with the context of
// the step, right before the action.
//
// It writes the changes that the steps have made to the status so far, so that the pass after a crash knows about the
// action. It also makes sure that the step does not act for an outdated object: the cache of a process that has just started
// may show an object as it was long ago, although it has been changed or deleted since.
//
// If the status has changed, Checkpoint sends one status patch with the resource version. Otherwise it reads the object from
// the API server, but only once for each object in the life of the process: what the cache shows later is newer. It does not
// read it if this pass has already written the metadata of the object, because such a write carries the resource version
// too.
//
// If Checkpoint returns an error, do not act, and return the error from the step. The error is a conflict
// (apierrors.IsConflict) if the object was changed or deleted since it was read: the pass is then repeated. It is also an
// error to call Checkpoint outside of a step, or for a kind whose status is not written, such as with
// [Reconciler.WithoutStatus].
func Checkpoint(ctx context.Context) error {
	p := passFrom(ctx)
	if p == nil {
		return errors.New("checkpoint outside of a pass: call it in a step, with the context that the step was given")
	}
	return p.checkpoint(ctx)
}

// freshness is what a pass has found out about the version of the object that it works on. It only rises during a pass.
type freshness int

const (
	// fromCache: nothing is known. The cache of a process that has just started may show a version of long ago.
	fromCache freshness = iota
	// current: the version is not older than this process, because a write with a lock or a read from the API server
	// said so.
	current
	// uncertain: a checkpoint or a confirmation failed, for another reason than a conflict. It is not known whether the
	// checkpoint was stored. From now on the status is written only with a lock, so that it cannot overwrite the change
	// of another writer.
	uncertain
	// outdated: there was a conflict. The status is not written in this pass, since that would meet the same conflict.
	outdated
)

// after returns the freshness after a write with a lock, or a read from the API server, that has returned err. A success
// does not make up for a failed checkpoint or a conflict before it.
func (f freshness) after(err error) freshness {
	switch {
	case err == nil:
		return max(f, current)
	case isConflict(err):
		return outdated
	default:
		return max(f, uncertain)
	}
}

func (p *pass[T]) checkpoint(ctx context.Context) error {
	if err := p.status.recordable(); err != nil {
		return err
	}
	p.status.fillRequired(p.obj)
	if p.status.equal(p.before, p.obj) {
		return p.confirm(ctx)
	}
	err := p.writeStatus(ctx, true)
	p.fresh = p.fresh.after(err)
	if err == nil {
		p.memory.setCurrent(p.name, p.before.GetUID())
	}
	return err
}

// ConfirmCurrent implements [passcontext.Pass]. It is [Checkpoint] without a record in the status, for packages that do in
// the cluster what cannot be undone.
func (p *pass[T]) ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error) {
	if !p.owns(obj) {
		return false, nil
	}
	return true, p.confirm(ctx)
}

// confirm makes sure that the object is not older than this process. It sends a request, unless the process has confirmed
// the object before. If the object has been changed or deleted since it was read, confirm returns the conflict that a write
// with a lock would have met.
func (p *pass[T]) confirm(ctx context.Context) error {
	uid := p.before.GetUID()
	if p.memory.isCurrent(p.name, uid) {
		return nil
	}
	if p.fresh != current {
		err := p.compareLive(ctx)
		p.fresh = p.fresh.after(err)
		if err != nil {
			return err
		}
	}
	p.memory.setCurrent(p.name, uid)
	return nil
}

// compareLive reads the object from the API server, and returns a conflict if it is another version or gone.
func (p *pass[T]) compareLive(ctx context.Context) error {
	live, err := p.readLive(ctx)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read %s %s, to make sure that it has not changed: %w", p.kind.Kind, p.name, err)
	case err != nil, live.GetUID() != p.before.GetUID(), live.GetResourceVersion() != p.before.GetResourceVersion():
		return p.conflict()
	}
	return nil
}

// conflict returns a conflict with a change that the cache does not show yet.
func (p *pass[T]) conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Group: p.kind.Group, Resource: p.kind.Kind}, p.name.Name,
		errors.New("it was changed or deleted, and the cache does not show that yet"))
}

// readLive reads the object, at least its metadata, from the API server.
func (p *pass[T]) readLive(ctx context.Context) (client.Object, error) {
	if p.stepClient.reader.Live == nil { // not set up with a manager; a manager's client does not cache unstructured objects
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(p.kind)
		return u, p.client.Get(ctx, p.name, u)
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(p.kind)
	return m, p.stepClient.reader.Live.Get(ctx, p.name, m)
}
