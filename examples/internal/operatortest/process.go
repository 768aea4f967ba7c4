package operatortest

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Process is a process of an operator. Its reads of typed objects and of metadata come from the [History], as a
// manager's client reads them from the cache. Its reads of unstructured objects and its writes go to the API server.
type Process struct {
	*History
	Fault

	// Writes is the number of writes that were tried.
	Writes int
	// Crashed is true when the process has ended.
	Crashed bool
}

var errCrashed = errors.New("the process has ended")

// Client returns the client for the operator.
func (p *Process) Client() client.Client {
	return interceptor.NewClient(p.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, untyped := obj.(runtime.Unstructured); untyped {
				return p.Read(func() error { return c.Get(ctx, key, obj, opts...) })
			}
			return p.Read(func() error { return p.get(p.Lag, key.Name, obj) })
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return p.Read(func() error { return p.list(p.Lag, list, (&client.ListOptions{}).ApplyOptions(opts)) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return p.Write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return p.Write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return p.Write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return p.Write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return p.Write(func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return p.Write(func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// Read calls a function that changes nothing, unless the process has ended.
func (p *Process) Read(read func() error) error {
	if p.Crashed {
		return errCrashed
	}
	return read()
}

// Write calls a function that changes something, in the API server or elsewhere, and ends the process if the fault is here.
func (p *Process) Write(send func() error) error {
	if p.Crashed {
		return errCrashed
	}
	p.Writes++
	p.Crashed = p.Writes == p.CrashAt
	if p.Crashed && !p.Committed {
		return errCrashed
	}
	err := send()
	if p.Crashed {
		return errCrashed
	}
	return err
}
