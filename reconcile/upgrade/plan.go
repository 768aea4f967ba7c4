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

// ErrIncomplete is the error of a plan that does not have the changes of all objects. Plan still writes the changes
// that it knows.
var ErrIncomplete = errors.New("the plan is not complete: it says for which objects, and why")

// Options say in which format a plan is written, and which objects it covers.
type Options struct {
	// Format is text, which is the default, json, or markdown for a pull request.
	Format string
	// Namespace limits the plan to the objects of a namespace. By default the plan covers all namespaces that the manager's cache
	// covers.
	Namespace string
	// Selector limits the plan to objects whose labels match. By default the plan covers all objects.
	Selector labels.Selector
	// Progress receives a line every two seconds, which says how many objects are planned. The default is the standard error.
	// io.Discard suppresses the lines.
	Progress io.Writer
}

// withDefaults returns the options with the defaults filled in.
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
// If nothing would change, the error is nil. If something would change, it is [ErrChanges]. If a reconcile would fail for an object,
// or it cannot be known what it would do, the error is [ErrIncomplete], also if there are changes. If ctx ends, Plan writes the
// changes that it knows, and returns ErrIncomplete. Any other error means that the set-up has a mistake, or that the operator could
// not run at all, for example because a permission to list is missing. Then Plan writes nothing.
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
