// Package builders stores which steps build which children. It finds two steps that build the same child: they would overwrite each
// other in each reconcile.
package builders

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/managervalues"
)

// Reconciler has the steps of one reconciler, and the functions that decide which children they build.
type Reconciler struct {
	Kind    schema.GroupVersionKind  // the kind of the reconciled objects
	Selects func(client.Object) bool // reports whether the reconciler reconciles an object
	Client  client.Client            // the client of the steps
	Steps   []Step                   // in the order in which they run
	others  *reconcilers             // the reconcilers of the same manager; nil without a manager
}

// Step is one step of a reconciler. Builds reports whether the step builds an object of this name for an owner. It returns false if
// it is not certain. It is nil if that is never known.
type Step struct {
	Name   string
	Builds func(ctx context.Context, c client.Client, obj client.Object, kind schema.GroupKind, name types.NamespacedName) bool
}

// reconcilers has the reconcilers of one manager.
type reconcilers struct {
	mu  sync.Mutex
	all []*Reconciler
}

var managers managervalues.Values[*reconcilers]

// Join adds the reconciler to the other reconcilers of a manager, so that their steps are compared with its steps.
// Call it once.
func (r *Reconciler) Join(mgr ctrl.Manager) (err error) {
	if r.others, err = managers.Of(mgr, func() (*reconcilers, error) { return &reconcilers{}, nil }); err != nil {
		return err
	}
	r.others.mu.Lock()
	defer r.others.mu.Unlock()
	r.others.all = append(r.others.all, r)
	return nil
}

// OtherThan returns the name of another step that builds a child of obj. running is the index of the step that is running. If no
// other step builds the child, it returns an empty text.
func (r *Reconciler) OtherThan(ctx context.Context, running int, obj client.Object, kind schema.GroupKind, name types.NamespacedName) string {
	for i := range r.Steps {
		if i != running && r.builds(ctx, i, obj, kind, name) {
			return r.Steps[i].Name
		}
	}
	if r.others == nil {
		return ""
	}
	r.others.mu.Lock()
	all := slices.Clip(r.others.all)
	r.others.mu.Unlock()
	for _, other := range all {
		if other == r || other.Kind != r.Kind || !other.Selects(obj) {
			continue
		}
		for i := range other.Steps {
			if other.builds(ctx, i, obj, kind, name) {
				return fmt.Sprintf("%s of another reconciler of %s", other.Steps[i].Name, r.Kind.Kind)
			}
		}
	}
	return ""
}

func (r *Reconciler) builds(ctx context.Context, step int, obj client.Object, kind schema.GroupKind, name types.NamespacedName) bool {
	builds := r.Steps[step].Builds
	return builds != nil && builds(ctx, r.Client, obj, kind, name)
}
