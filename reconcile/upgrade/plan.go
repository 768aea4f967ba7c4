package upgrade

import (
	"context"
	"errors"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/internal/preview"
)

// Change is what would be done to one child. A step of your own returns it from its method Preview.
type Change = preview.Change

// Difference is one field that would change.
type Difference = preview.Difference

// Action is what would be done to a child.
type Action = preview.Action

// The actions.
const (
	None     = preview.None     // it is as desired
	Create   = preview.Create   // it is absent
	Apply    = preview.Apply    // it differs
	Recreate = preview.Recreate // it is deleted and created, since a field that differs cannot change
	Replace  = preview.Replace  // a StatefulSet is deleted without its pods, and created with larger volumes
	Delete   = preview.Delete   // it is not desired any more
	Retain   = preview.Retain   // it is not desired any more and stays, without its owner reference
	Compare  = preview.Compare  // it is outside of the cluster: only the operator compares it, and changes it if it differs
)

// ErrChanges is the error of a plan that has changes.
var ErrChanges = errors.New("the plan has changes")

// ErrIncomplete is the error of a plan that does not know what would become of all objects. What it knows is written.
var ErrIncomplete = errors.New("the plan is not complete: it says for which objects, and why")

// Option is an option of [Plan].
type Option func(*settings)

type settings struct {
	format    preview.Format
	namespace string
	selector  labels.Selector
	progress  io.Writer
}

// Format sets the format: text, which is the default, json, or markdown for a pull request.
func Format(format string) Option {
	return func(s *settings) { s.format = preview.Format(format) }
}

// InNamespace limits the plan to the objects of a namespace. By default it has the objects of all namespaces that the manager's cache has.
func InNamespace(namespace string) Option {
	return func(s *settings) { s.namespace = namespace }
}

// Selecting limits the plan to objects whose labels match.
func Selecting(selector labels.Selector) Option {
	return func(s *settings) { s.selector = selector }
}

// ProgressTo sets where the plan says how far it is, every two seconds. The default is the standard error. io.Discard is silent.
func ProgressTo(w io.Writer) Option {
	return func(s *settings) { s.progress = w }
}

// Plan writes to w what the operator that setup adds to a manager would change in the cluster that access is for. options are the
// options of the operator's manager; leadership, endpoints and webhooks are left out. Requests are limited by the QPS and Burst
// of access.
//
// The error is nil if nothing would change, and [ErrChanges] if something would. It is [ErrIncomplete] if a pass would fail for an
// object, or if it is not known what it would do, also if there are changes. If ctx ends, Plan writes what it knows, and returns
// ErrIncomplete. Other errors are mistakes of the set-up, or the operator could not run at all, such as without a permission to list:
// then nothing is written.
func Plan(ctx context.Context, access *rest.Config, options ctrl.Options, setup func(ctrl.Manager) error, w io.Writer, opts ...Option) error {
	s := &settings{format: preview.Text, selector: labels.Everything(), progress: os.Stderr}
	for _, o := range opts {
		o(s)
	}
	if err := s.format.Check(); err != nil {
		return err
	}
	m, err := newManager(access, options)
	if err != nil {
		return err
	}
	if err := setup(silent(m, ctrl.Manager.GetEventRecorder)); err != nil {
		return err
	}
	report, err := m.plan(ctx, s)
	if err != nil {
		return err
	}
	if err := report.Write(w, s.format); err != nil {
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
