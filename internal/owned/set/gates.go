package set

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/servedkinds"
)

// gates has, for each kind with the option IfServed, the watch of the kind. The watch tells whether the API server serves the kind, and
// permits reads from the cache. gates is nil without a manager.
type gates map[schema.GroupVersionKind]*servedkinds.Watch

// servedState says whether the API server serves the kind of a child, in one reconcile.
type servedState int

// The values of servedState.
const (
	alwaysServed servedState = iota // the child does not have the option IfServed, so its kind is not checked
	NotServed
	NotWatched // the kind is served, but the cache does not have its objects yet
	ServedNow
)

// leavesOut reports whether a reconcile leaves out a child whose kind is in this state.
func (s servedState) leavesOut() bool { return s == NotServed || s == NotWatched }

// acquire returns the state of a child's kind. If the state is ServedNow, the kind may be read until the caller calls release.
func (g gates) acquire(child *Child, gvk schema.GroupVersionKind, c client.Client) (servedState, error) {
	if !child.Options.IfServed {
		return alwaysServed, nil
	}
	if w := g[gvk]; w != nil {
		switch {
		case w.Acquire():
			return ServedNow, nil
		case w.Served():
			return NotWatched, nil
		}
		return NotServed, nil
	}
	_, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return NotServed, nil
	case err != nil:
		return NotServed, fmt.Errorf("%s: find out whether its kind is served: %w", child.Describe(), err)
	}
	return ServedNow, nil
}

func (g gates) release(state servedState, gvk schema.GroupVersionKind) {
	if w := g[gvk]; w != nil && state == ServedNow {
		w.Release()
	}
}

// CheckRefusal replaces the error of a child with the option IfServed if the API server has just ceased to serve the child's kind. The new
// error is a [*owned.WaitingError], and the watch checks again whether the kind is served. Any other err is returned unchanged.
func (g gates) CheckRefusal(d *owned.Declared, err error) error {
	if !meta.IsNoMatchError(err) && !apierrors.IsMethodNotSupported(err) && !isUnknownResource(err) {
		return err
	}
	if w := g[d.Kind.GVK]; w != nil {
		w.CheckAgain()
	}
	return owned.NewWaiting(ReasonKindNotServed, refusalRetry, fmt.Sprintf(
		"%s: its kind is not served any more: %v", d.Kind.Describe(d.Object), err))
}

// refusalRetry is the delay before the next attempt to write a child whose kind is no longer served. The watch of the kind usually notices
// the change earlier.
const refusalRetry = 5 * time.Second

// isUnknownResource reports whether the API server does not know the resource. If only the object does not exist, isUnknownResource reports
// false.
func isUnknownResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
