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

// gates are the watches of the kinds with the option IfServed, by kind. They are nil without a manager.
type gates map[schema.GroupVersionKind]*servedkinds.Watch

// servedState is whether the kind of a child with the option IfServed is served in one reconcile.
type servedState int

// The states.
const (
	alwaysServed servedState = iota // without the option
	NotServed
	NotWatched // served, but the cache does not have its objects yet
	ServedNow
)

// leavesOut reports whether a child in this state is left out of a reconcile.
func (s servedState) leavesOut() bool { return s == NotServed || s == NotWatched }

// acquire reports whether the kind of a child may be read. If so, the caller must call release.
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

// CheckRefusal returns the error of a child with the option IfServed. If the API server has just ceased to serve the child's kind, the
// error is a [*owned.WaitingError], and the watch checks again whether the kind is served. Otherwise it is err.
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

// refusalRetry is the delay before a child is tried again if its kind is no longer served. The watch of the kind usually notices the
// change earlier.
const refusalRetry = 5 * time.Second

// isUnknownResource reports whether the API server does not know the resource. If only the object does not exist, it reports false.
func isUnknownResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
