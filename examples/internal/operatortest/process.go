package operatortest

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Process is one life of an operator. Its typed reads and those of metadata come from the [History], as a manager's come
// from the cache; its untyped reads and its writes go to the API server.
type Process struct {
	*History
	Fault

	// Writes counts those that were tried.
	Writes int
	// Crashed says that the process has ended.
	Crashed bool
}

var errCrashed = errors.New("the process has ended")

// Client is what the operator is given.
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

// Read does what changes nothing, unless the process has ended.
func (p *Process) Read(read func() error) error {
	if p.Crashed {
		return errCrashed
	}
	return read()
}

// Write does what changes something, here or in another system, and ends the process there if that is the fault.
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
