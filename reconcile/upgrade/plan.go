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

// ErrIncomplete is the error of a plan that does not know what would become of all objects. What it knows is written.
var ErrIncomplete = errors.New("the plan is not complete: it says for which objects, and why")

// Options say how a plan is written, and of what.
type Options struct {
	// Format is text, which is the default, json, or markdown for a pull request.
	Format string
	// Namespace limits the plan to the objects of a namespace. By default it has the objects of all namespaces that the manager's cache has.
	Namespace string
	// Selector limits the plan to objects whose labels match. By default it has all.
	Selector labels.Selector
	// Progress is where the plan says how far it is, every two seconds. The default is the standard error. io.Discard is silent.
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

// Plan writes to w what the operator that setup adds to a manager would change in the cluster that access is for. manager has the
// options of the operator's manager; leadership, endpoints and webhooks are left out. Requests are limited by the QPS and Burst
// of access.
//
// The error is nil if nothing would change, and [ErrChanges] if something would. It is [ErrIncomplete] if a pass would fail for an
// object, or if it is not known what it would do, also if there are changes. If ctx ends, Plan writes what it knows, and returns
// ErrIncomplete. Other errors are mistakes of the set-up, or the operator could not run at all, such as without a permission to list:
// then nothing is written.
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
