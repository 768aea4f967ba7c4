package operatortest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Names of objects in a [Lifecycle] with which something is wrong.
const (
	// Unseen is the name of children that the operator's cache does not show.
	Unseen = "unseen"
	// Vanishing is the name of an object that is deleted right before the operator writes its status.
	Vanishing = "vanishing"
	// Refused is the name of objects that the API server fails to create, and whose status it fails to write, for some tries of each
	// kind. Each time it says something else. The events of that regard the same version of an object: client-go takes them for a series.
	Refused = "refused"
)

const tries = 3

// Lifecycle is what users do in one namespace, so that the operator uses all its permissions.
type Lifecycle struct {
	// Options of the operator's manager: Scheme, Cache and Client. The others are not used.
	Options ctrl.Options
	// Setup adds the operator to its manager.
	Setup func(ctrl.Manager) error
	// Before is what users did before the operator starts. It may be nil.
	Before func(ctx context.Context) error
	// Steps are done in order, after the operator has started.
	Steps []LifecycleStep
}

// LifecycleStep is something that a user does, and what the operator does then.
type LifecycleStep struct {
	// Do is what the user does.
	Do func(ctx context.Context) error
	// Until is called again until it returns nil.
	Until func(ctx context.Context) error
}

// do does the steps of a lifecycle. In the end, there are all kinds of events.
func (l *Lifecycle) do(ctx context.Context, u *User) error {
	for n, step := range append(slices.Clone(l.Steps), LifecycleStep{Until: u.hasEvents}) {
		if step.Do != nil {
			if err := step.Do(ctx); err != nil {
				return fmt.Errorf("step %d: %w", n+1, err)
			}
		}
		for between := backoff(); step.Until != nil; {
			pause(ctx, between.Step()) // the operator has not done it at once
			err := step.Until(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("step %d: %w", n+1, err)
			}
		}
	}
	return nil
}

// hasEvents returns nil if the leader election has emitted an event, and the operator one twice.
func (u *User) hasEvents(ctx context.Context) error {
	var list corev1.EventList
	if err := u.List(ctx, &list, client.InNamespace(u.Namespace)); err != nil {
		return err
	}
	elected, repeated := false, false
	for _, e := range list.Items {
		elected = elected || e.Reason == "LeaderElection"
		repeated = repeated || e.Series != nil
	}
	if !elected || !repeated {
		return fmt.Errorf("leader elected: %t, event repeated: %t", elected, repeated)
	}
	return nil
}

// disturb returns functions that disturb the operator at objects of the names [Unseen], [Vanishing] and [Refused]. It sets
// vanished once an object of that name is deleted.
func (u *User) disturb(vanished *atomic.Bool) interceptor.Funcs {
	var failures sync.Map // reflect.Type → *atomic.Int32
	refuse := func(obj client.Object) error {
		if obj.GetName() == Refused {
			ofType, _ := failures.LoadOrStore(reflect.TypeOf(obj), &atomic.Int32{})
			if n := ofType.(*atomic.Int32).Add(1); n <= tries {
				return apierrors.NewInternalError(fmt.Errorf("try %d", n))
			}
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := refuse(obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if err == nil && key.Name == Unseen && metav1.GetControllerOfNoCopy(obj) == nil && obj.GetLabels()[Unseen] != "" {
				return apierrors.NewNotFound(corev1.Resource("objects"), key.Name)
			}
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := refuse(obj); err != nil {
				return err
			}
			if obj.GetName() == Vanishing {
				theirs := obj.DeepCopyObject().(client.Object)
				if err := client.IgnoreNotFound(u.Delete(ctx, theirs)); err != nil {
					return err
				}
				vanished.Store(true)
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

// Hidden returns the metadata of a child that the operator's cache does not show.
func (u *User) Hidden() metav1.ObjectMeta {
	meta := u.Meta(Unseen)
	meta.Labels = map[string]string{Unseen: "true"}
	return meta
}

// CreateAll returns a function that creates objects.
func (u *User) CreateAll(objects ...client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, obj := range objects {
			if err := u.Create(ctx, obj); err != nil {
				return err
			}
		}
		return nil
	}
}

// Edit returns a function that reads an object, edits it, and sends a merge patch.
func Edit[T client.Object](u *User, obj T, edit func(T)) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := u.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		before := obj.DeepCopyObject().(T)
		edit(obj)
		return u.Patch(ctx, obj, client.MergeFrom(before))
	}
}

// Shows returns a function that reads an object and returns an error unless it is as expected.
func Shows[T client.Object](u *User, obj T, expected func(T) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := u.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if !expected(obj) {
			return fmt.Errorf("%T %s is %+v", obj, obj.GetName(), obj)
		}
		return nil
	}
}

// Absent returns a function that returns an error while an object exists.
func (u *User) Absent(obj client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		switch err := u.Get(ctx, client.ObjectKeyFromObject(obj), obj); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New(obj.GetName() + " exists")
	}
}
