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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/step"
	"github.com/opblocks/opblocks/reconcile/preview"
)

const (
	// objectTimeout limits the requests for one object.
	objectTimeout = 30 * time.Second
	// mostUnanswered is how many objects in a row may get no answer from the API server. Then the plan ends.
	mostUnanswered = 5
	// progressEvery is the time between two lines about the progress.
	progressEvery = 2 * time.Second
)

// walk plans all objects, one after the other.
type walk struct {
	*manager
	options    Options
	report     *forecast.Report
	unanswered int // how many objects in a row have got no answer
}

func (w *walk) all(ctx context.Context) error {
	kinds := byKind(w.planned)
	objects := make([][]client.Object, len(kinds))
	for i, controllers := range kinds {
		all, err := w.list(ctx, controllers[0].Kind)
		if err != nil {
			return err
		}
		objects[i] = all
		w.report.Expect(controllers[0].Kind.Kind, len(all))
		for _, p := range controllers {
			w.noteLeftOut(p)
		}
	}
	for i, controllers := range kinds {
		last := time.Now()
		for n, obj := range objects[i] {
			if w.ends(ctx) {
				return nil
			}
			if now := time.Now(); now.Sub(last) >= progressEvery {
				_, _ = fmt.Fprintf(w.options.Progress, "planned %d of %d %s\n", n, len(objects[i]), controllers[0].Kind.Kind)
				last = now
			}
			w.object(ctx, controllers, obj)
		}
	}
	w.ends(ctx)
	return nil
}

// byKind groups the controllers by kind. The walk plans each object once, for all controllers of its kind.
func byKind(planned []step.Planned) (kinds [][]step.Planned) {
	for _, p := range planned {
		i := slices.IndexFunc(kinds, func(others []step.Planned) bool { return others[0].Kind == p.Kind })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, nil)
		}
		kinds[i] = append(kinds[i], p)
	}
	return kinds
}

// noteLeftOut adds the steps of a controller that cannot be planned to the report.
func (w *walk) noteLeftOut(p step.Planned) {
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

// ends reports whether the plan ends early. It then adds the reason to the report.
func (w *walk) ends(ctx context.Context) bool {
	switch {
	case ctx.Err() != nil:
		w.report.Ended = "it was interrupted"
	case w.unanswered >= mostUnanswered:
		w.report.Ended = fmt.Sprintf("the API server has not answered for %d objects in a row", w.unanswered)
	}
	return w.report.Ended != ""
}

// list returns the objects of a kind in the cache, sorted by namespace and name. The caller must not change them.
func (w *walk) list(ctx context.Context, kind schema.GroupVersionKind) (all []client.Object, err error) {
	obj, err := w.GetScheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list, ok := obj.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", obj)
	}
	if err := w.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy, client.InNamespace(w.options.Namespace), client.MatchingLabelsSelector{Selector: w.options.Selector}); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
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

// object adds to the report what the controllers of a kind would do for one object.
func (w *walk) object(ctx context.Context, controllers []step.Planned, obj client.Object) {
	found := forecast.Object{Kind: controllers[0].Kind, Name: client.ObjectKeyFromObject(obj)}
	reasons := make([]string, len(controllers))
	for i, p := range controllers {
		reasons[i] = skipped(p, obj)
	}
	if !slices.Contains(reasons, "") {
		found.Skipped = reasons[0]
	}
	limited, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	for i, p := range controllers {
		if reasons[i] != "" {
			continue
		}
		changes, err := callSteps(limited, p, obj)
		found.Changes = append(found.Changes, forecast.WithoutMoved(changes)...)
		found.Err = errors.Join(found.Err, err)
	}
	if ctx.Err() != nil { // the plan was interrupted, so the changes of this object are not known
		return
	}
	forecast.NoteMoved(found.Changes)
	w.countAnswers(&found)
	w.report.Add(found)
}

// callSteps returns the changes that the steps of a controller would make for an object.
func callSteps(ctx context.Context, p step.Planned, obj client.Object) (all []preview.Change, failure error) {
	obj = obj.DeepCopyObject().(client.Object)
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(p.Kind)
	for _, name := range p.Finalizers {
		controllerutil.AddFinalizer(obj, name) // a reconcile adds the finalizers before its steps run
	}
	for _, s := range p.Steps {
		if s.Preview == nil {
			continue
		}
		changes, err := call(ctx, p, s, obj)
		all = append(all, changes...)
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("step %q: %w", s.Name, err))
		}
	}
	return all, failure
}

// skipped returns why a reconcile would do nothing for an object, or "" if it would run.
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

// call calls a step. It returns an error if the step panics, as a reconcile does.
func call(ctx context.Context, p step.Planned, s step.PlannedStep, obj client.Object) (changes []preview.Change, err error) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Info("Step panicked", "step", s.Name, "panic", r, "stack", string(debug.Stack()))
			err = errors.New("it panicked; the log has the stack")
		}
	}()
	changes, err = s.Preview(ctx, p.Client, obj)
	for i := range changes {
		if c := &changes[i]; c.Err == nil && c.Waits == "" {
			c.Err = forecast.Check(c.Action)
		}
	}
	return changes, err
}

// countAnswers counts how many objects in a row have got no answer from the API server. The changes of such an object are
// not known.
func (w *walk) countAnswers(o *forecast.Object) {
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
