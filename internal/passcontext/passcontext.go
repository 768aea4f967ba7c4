// Package passcontext keeps the pass in the context of its steps, for those in packages that do not
// import package reconcile.
package passcontext

import "context"

type key struct{}

// With gives the context of a pass.
func With(ctx context.Context, pass any) context.Context {
	return context.WithValue(ctx, key{}, pass)
}

// Of gives the pass, or nil outside of one.
func Of(ctx context.Context) any { return ctx.Value(key{}) }
