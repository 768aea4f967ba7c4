package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/preview"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/step"
)

const (
	// objectTimeout limits the requests for one object.
	objectTimeout = 30 * time.Second
	// mostUnanswered is a number of objects. If the API server gives no answer for so many in a row, the plan ends.
	mostUnanswered = 5
	// progressEvery is the time between two lines that say how far the plan is.
	progressEvery = 2 * time.Second
)

// walk looks at all objects, one after the other.
type walk struct {
	*manager
	*settings
	report     *preview.Report
	unanswered int // objects in a row
}

func (w *walk) all(ctx context.Context) error {
	objects := make([][]client.Object, len(w.planned))
	for i, p := range w.planned {
		all, err := w.list(ctx, p)
		if err != nil {
			return err
		}
		objects[i] = all
		w.report.Expect(p.Kind.Kind, len(all))
		var without []string
		for _, s := range p.Steps {
			if s.Preview == nil {
				without = append(without, s.Name)
			}
		}
		if len(without) > 0 {
			w.report.LeftOut = append(w.report.LeftOut, fmt.Sprintf("What these steps of %s would do is not in the plan, since they have no method Preview: %s.", p.Kind.Kind, strings.Join(without, ", ")))
		}
	}
	for i, p := range w.planned {
		last := time.Now()
		for n, obj := range objects[i] {
			if w.ends(ctx) {
				return nil
			}
			if now := time.Now(); now.Sub(last) >= progressEvery {
				_, _ = fmt.Fprintf(w.progress, "planned %d of %d %s\n", n, len(objects[i]), p.Kind.Kind)
				last = now
			}
			w.object(ctx, p, obj)
		}
	}
	w.ends(ctx)
	return nil
}

// ends notes why the plan ends before its end.
func (w *walk) ends(ctx context.Context) bool {
	switch {
	case ctx.Err() != nil:
		w.report.Ended = "it was interrupted"
	case w.unanswered >= mostUnanswered:
		w.report.Ended = fmt.Sprintf("the API server has not answered for %d objects in a row", w.unanswered)
	}
	return w.report.Ended != ""
}

// list returns the objects of a kind in the cache, by namespace and name. They are the cache's own.
func (w *walk) list(ctx context.Context, p step.Planned) (all []client.Object, err error) {
	obj, err := w.GetScheme().New(p.Kind.GroupVersion().WithKind(p.Kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list, ok := obj.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", obj)
	}
	if err := w.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy, client.InNamespace(w.namespace), client.MatchingLabelsSelector{Selector: w.selector}); err != nil {
		return nil, fmt.Errorf("list %s: %w", p.Kind.Kind, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			all = append(all, obj)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all, err
}

// object adds what would be done for one object to the report.
func (w *walk) object(ctx context.Context, p step.Planned, obj client.Object) {
	found := preview.Object{Kind: p.Kind, Name: client.ObjectKeyFromObject(obj)}
	if found.Skipped = skipped(p, obj); found.Skipped == "" {
		ctx, cancel := context.WithTimeout(ctx, objectTimeout)
		defer cancel()
		obj = obj.DeepCopyObject().(client.Object)
		obj.SetManagedFields(nil)
		obj.GetObjectKind().SetGroupVersionKind(p.Kind)
		for _, name := range p.Finalizers {
			controllerutil.AddFinalizer(obj, name) // the pass does before its steps
		}
		for _, s := range p.Steps {
			if s.Preview == nil {
				continue
			}
			changes, err := call(ctx, p, s, obj)
			found.Changes = append(found.Changes, changes...)
			if err != nil {
				found.Err = errors.Join(found.Err, fmt.Errorf("step %q: %w", s.Name, err))
			}
		}
	}
	if ctx.Err() != nil { // interrupted: nothing is known of this object
		return
	}
	w.countAnswers(&found)
	w.report.Add(found)
}

// skipped returns why a pass would do nothing for an object, or nothing.
func skipped(p step.Planned, obj client.Object) string {
	switch {
	case p.Selects != nil && !p.Selects(obj):
		return "the reconciler leaves it to others"
	case obj.GetDeletionTimestamp() != nil:
		return "it is being deleted"
	case record.PauseOf(obj).At(time.Now()).Paused:
		return "it is paused"
	}
	return ""
}

// call calls a step. A panic is an error, as in a pass.
func call(ctx context.Context, p step.Planned, s step.PlannedStep, obj client.Object) (changes []preview.Change, err error) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Info("Step panicked", "step", s.Name, "panic", r, "stack", string(debug.Stack()))
			err = errors.New("it panicked; the log has the stack")
		}
	}()
	return s.Preview(ctx, p.Client, obj)
}

// countAnswers counts the objects in a row for which the API server gave no answer. What would be done for such an object is not known.
func (w *walk) countAnswers(o *preview.Object) {
	failures := []error{o.Err}
	for i := range o.Changes {
		failures = append(failures, o.Changes[i].Err)
	}
	i := slices.IndexFunc(failures, isUnanswered)
	if i < 0 {
		w.unanswered = 0
		return
	}
	o.Err = failures[i]
	w.unanswered++
}

func isUnanswered(err error) bool {
	var failed *url.Error
	return errors.As(err, &failed) && !errors.Is(err, errNotSent) || errors.Is(err, context.DeadlineExceeded)
}
