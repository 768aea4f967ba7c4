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

	"github.com/opblocks/opblocks/internal/passcontext"
)

// Checkpoint comes before something is done outside of the cluster. It writes what a step has
// changed in the object's status so far: after a crash in between, the next pass knows. And it
// makes sure that the object is no older than the process: one that has just started may be shown
// an object that was changed or deleted long ago, and outside nobody would notice.
//
// It costs a status write, with a lock, if something has changed. Else it costs a read of the object,
// once in the life of a process: what the cache shows later is newer. There is none if the pass has
// written the object's metadata, with a lock too.
//
// Call it in a step or in its Finalize, with the context that it was given, and do nothing outside
// if it gives an error. A conflict among them is retried quietly when the step returns it.
func Checkpoint(ctx context.Context) error {
	p, ok := passcontext.FromContext(ctx).(interface {
		checkpoint(ctx context.Context) error
	})
	if !ok {
		return errors.New("checkpoint outside of a pass: call it in a step, with the context that the step was given")
	}
	return p.checkpoint(ctx)
}

func (p *pass[T]) checkpoint(ctx context.Context) error {
	if p.status.status < 0 {
		return errors.New("checkpoint of a kind whose status is not written: record what is going to be done elsewhere, such as in an annotation of the object")
	}
	p.status.fill(p.obj)
	var err error
	if p.status.equal(p.before, p.obj) {
		err = p.confirm(ctx)
	} else if err = p.write(ctx, true); err == nil {
		p.confirmed.Store(p.name, p.before.GetUID())
	}
	p.locked = p.locked || err != nil
	p.outdated = p.outdated || err != nil && isConflict(err)
	return err
}

// ConfirmCurrent is [Checkpoint] for packages that know the pass by its context alone, and do in the cluster what cannot be
// undone. It records nothing. Known tells whether the pass is over the object.
func (p *pass[T]) ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error) {
	if !p.owns(obj) {
		return false, nil
	}
	err = p.confirm(ctx)
	p.outdated = p.outdated || err != nil && isConflict(err)
	return true, err
}

// confirm makes sure, past the cache, that the object was as it was read when this process had already begun. If it
// was not, that is the conflict that a write with a lock would have met.
func (p *pass[T]) confirm(ctx context.Context) error {
	uid := p.before.GetUID()
	if known, _ := p.confirmed.Load(p.name); known == uid && uid != "" {
		return nil
	}
	if !p.written {
		switch live, err := p.live(ctx); {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("read %s %s, to make sure that it has not changed: %w", p.kind.Kind, p.name, err)
		case err != nil, live.GetUID() != uid, live.GetResourceVersion() != p.before.GetResourceVersion():
			return p.conflict()
		}
	}
	p.confirmed.Store(p.name, uid)
	return nil
}

// conflict is with a change that the cache has not heard of.
func (p *pass[T]) conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Group: p.kind.Group, Resource: p.kind.Kind}, p.name.Name,
		errors.New("it was changed or deleted, and the cache has not heard of that yet"))
}

// live reads the object from the API server, its metadata at least.
func (p *pass[T]) live(ctx context.Context) (client.Object, error) {
	if p.stepClient.live == nil { // there is no manager; untyped objects are not cached
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(p.kind)
		return u, p.client.Get(ctx, p.name, u)
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(p.kind)
	return m, p.stepClient.live.Get(ctx, p.name, m)
}
