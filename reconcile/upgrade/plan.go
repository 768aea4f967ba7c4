package upgrade

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/internal/forecast"
)

// ErrChanges is the error of a plan that has changes.
var ErrChanges = errors.New("the plan has changes")

// ErrIncomplete is the error of a plan that does not know the changes of all objects. Plan still writes what it knows.
var ErrIncomplete = errors.New("the plan is not complete: it says for which objects, and why")

// Options say how a plan is written, and which objects it has.
type Options struct {
	// Format is text, which is the default, json, or markdown for a pull request.
	Format string
	// Namespace limits the plan to the objects of a namespace. By default the plan has the objects of all namespaces that the manager's
	// cache has.
	Namespace string
	// Selector limits the plan to objects whose labels match. By default the plan has all objects.
	Selector labels.Selector
	// Progress receives a line every two seconds that says how far the plan has come. The default is the standard error. io.Discard
	// discards the lines.
	Progress io.Writer
}

// withDefaults returns the options with the default of each field that is not set.
func (o Options) withDefaults() Options {
	o.Format = cmp.Or(o.Format, string(forecast.Text))
	if o.Selector == nil {
		o.Selector = labels.Everything()
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	return o
}

// Plan writes to w what an operator would change in a cluster. setup adds the operator to a manager, and access is for the cluster.
// manager has the options of the operator's manager; Plan ignores leadership, endpoints and webhooks. The QPS and Burst of access
// limit the requests.
//
// If nothing would change, the error is nil. If something would change, it is [ErrChanges]. If a pass would fail for an object, or
// nobody can know what it would do, the error is [ErrIncomplete], also if there are changes. If ctx ends, Plan writes what it knows,
// and returns ErrIncomplete. Other errors are mistakes of the set-up, or the operator could not run at all, such as without a
// permission to list. In these cases Plan writes nothing.
func Plan(ctx context.Context, access *rest.Config, manager ctrl.Options, setup func(ctrl.Manager) error, w io.Writer, options Options) error {
	options = options.withDefaults()
	format := forecast.Format(options.Format)
	if err := format.Check(); err != nil {
		return err
	}
	m, err := newManager(access, manager)
	if err != nil {
		return err
	}
	if err := setup(silent(m, ctrl.Manager.GetEventRecorder)); err != nil {
		return err
	}
	report, err := m.plan(ctx, options)
	if err != nil {
		return err
	}
	if err := report.Write(w, format); err != nil {
		return err
	}
	switch {
	case report.HasFailures():
		return ErrIncomplete
	case report.HasChanges():
		return ErrChanges
	}
	return nil
}
