package world

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/request"
)

// controller is a simulated controller. A step that has changed nothing is not repeated before something has changed that it may depend on:
// an object of a kind that it has asked for, the clock, or what is outside of the cluster.
type controller struct {
	server    *memoryserver.Server
	reconcile func(ctx context.Context, c client.Client) error
	client    client.Client                        // notes in asked what the step asks for
	asked     map[schema.GroupVersionKind]struct{} // the kinds that the last step asked for; nil: not known
	rested    request.Moment                       // when the last step changed nothing; the zero value: it changed something
}

func newController(w *World, reconcile func(context.Context, client.Client) error) *controller {
	c := &controller{server: w.Server, reconcile: reconcile}
	user := w.User
	note := func(obj runtime.Object) {
		if gvk, err := user.GroupVersionKindFor(obj); err == nil && c.asked != nil {
			gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
			c.asked[gvk] = struct{}{}
		}
	}
	c.client = interceptor.NewClient(user, interceptor.Funcs{
		Get: func(ctx context.Context, live client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			note(obj)
			return live.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, live client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			note(list)
			return live.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, live client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note(obj)
			return live.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, live client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			note(obj)
			return live.Delete(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, live client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			note(obj)
			return live.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, live client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			note(obj)
			return live.Patch(ctx, obj, patch, opts...)
		},
		DeleteAllOf: func(ctx context.Context, live client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			note(obj)
			return live.DeleteAllOf(ctx, obj, opts...)
		},
		Apply: func(ctx context.Context, live client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			c.asked = nil // it does not tell its kind
			return live.Apply(ctx, obj, opts...)
		},
		SubResource: func(live client.WithWatch, subresource string) client.SubResourceClient {
			c.asked = nil // it is told the kind later
			return live.SubResource(subresource)
		},
	})
	return c
}

// step takes a step, unless it would change nothing. now is the moment of the step.
func (c *controller) step(now request.Moment) error {
	if c.rests(now) {
		return nil
	}
	c.asked = map[schema.GroupVersionKind]struct{}{corev1.SchemeGroupVersion.WithKind("Namespace"): {}} // each creation may depend on it
	c.rested = request.Moment{}
	if err := c.reconcile(context.Background(), c.client); err != nil {
		return err
	}
	if c.asked != nil && c.server.Revision() == now.Revision {
		c.rested = now
	}
	return nil
}

// rests reports whether a step would change nothing.
func (c *controller) rests(now request.Moment) bool {
	last := c.rested
	last.Revision = now.Revision
	return !c.rested.Time.IsZero() && last == now && !slices.ContainsFunc(c.server.Changes(c.rested.Revision), func(change memoryserver.Change) bool {
		_, asked := c.asked[change.GVK]
		return asked
	})
}
