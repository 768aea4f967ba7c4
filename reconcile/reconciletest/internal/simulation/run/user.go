package run

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// userClient is the client of the user's actions. An action never fails because another writer has written an object.
type userClient struct {
	client.WithWatch
	world  *world.World
	holder *holder
	twins  bool // what the user creates is also created in another namespace
	locked bool // the caller already holds the run's lock
}

// withLock calls do with the run's lock held.
func (u *userClient) withLock(do func()) {
	if !u.locked {
		u.world.Mu.Lock()
		defer u.world.Mu.Unlock()
	}
	do()
}

// Delete deletes the object. A fault may add the finalizer of another controller here. The other writer's own finalizer is removed at once,
// since the action may create an object of the same name next. A Job is deleted with its pods, as kubectl does, unless the options say
// otherwise. The API server's default would leave the pods.
func (u *userClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	u.withLock(func() { u.holder.reach(obj, u.locked) })
	if kind, err := u.GroupVersionKindFor(obj); err == nil {
		opts = append(world.Propagation(kind), opts...) // the last one counts
	}
	err := u.WithWatch.Delete(ctx, obj, opts...)
	if err == nil {
		u.withLock(u.world.Others.ReleaseFinalizers)
	}
	return err
}

// Create creates the object. If another controller's finalizer still holds an object of that name, the finalizer is removed first.
func (u *userClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	asked := obj.DeepCopyObject().(client.Object)
	if u.twins {
		defer createTwin(ctx, u.WithWatch, asked)
	}
	defer u.reachWebhook("create", obj)()
	err := u.WithWatch.Create(ctx, obj, opts...)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	released := false
	u.withLock(func() { released = u.holder.release(asked) })
	if !released {
		return err
	}
	return u.WithWatch.Create(ctx, obj, opts...)
}

// createWithStatus creates a copy of the object, with its status.
func createWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	made := obj.DeepCopyObject().(client.Object)
	if err := c.Create(ctx, made); err != nil {
		return err
	}
	if !state.HasStatus(obj) || reflect.DeepEqual(state.StatusOf(obj), state.StatusOf(made)) {
		return nil
	}
	with := obj.DeepCopyObject().(client.Object)
	with.SetUID(made.GetUID())
	with.SetResourceVersion(made.GetResourceVersion())
	return c.Status().Update(ctx, with)
}

// UpdateWithStatus updates the object, and then its status if the API server ignored the status in the first request.
func UpdateWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	with := obj.DeepCopyObject().(client.Object)
	if err := c.Update(ctx, obj); err != nil {
		return err
	}
	if reflect.DeepEqual(state.StatusOf(with), state.StatusOf(obj)) {
		return nil
	}
	with.SetResourceVersion(obj.GetResourceVersion())
	return c.Status().Update(ctx, with)
}
