package memoryserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// writeOptions are the options that all kinds of writes have.
type writeOptions struct {
	manager string
	dryRun  bool
	strict  bool // unknown fields are errors
	force   bool // apply takes fields from other managers
	applied bool // the write is a server-side apply

	internal bool // the server itself writes, so no webhook is called
}

func newWriteOptions(manager string, dryRun []string, validation string) writeOptions {
	if manager == "" {
		manager = defaultManager
	}
	return writeOptions{
		manager: manager,
		dryRun:  slices.Contains(dryRun, metav1.DryRunAll),
		strict:  validation == metav1.FieldValidationStrict,
	}
}

// defaultManager is the field manager of requests that name none: the name of the program. The real server takes it from the user agent.
var defaultManager = filepath.Base(os.Args[0])

// lookup returns the kind and the key of a request's object. Like client-go, it returns an error if a name is missing.
func (c *liveClient) lookup(ctx context.Context, object runtime.Object, namespace, name string) (*kind.Kind, client.ObjectKey, error) {
	k, err := c.kindOf(ctx, object)
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	if err := requireName(k, namespace, name); err != nil {
		return nil, client.ObjectKey{}, err
	}
	return k, k.Key(namespace, name), nil
}

func requireName(k *kind.Kind, namespace, name string) error {
	switch {
	case name == "":
		return errors.New("resource name may not be empty")
	case k.Namespaced && namespace == "":
		return errors.New("an empty namespace may not be set when a resource name is provided")
	}
	return nil
}

func (c *liveClient) kindOf(ctx context.Context, object runtime.Object) (*kind.Kind, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(object, c.server.scheme)
	if err != nil {
		return nil, err
	}
	return c.kind(gvk)
}

// kindOfList is like [Server.kindOfList], and passes the kind to note.
func (c *liveClient) kindOfList(list client.ObjectList) (*kind.Kind, reflect.Type, error) {
	k, as, err := c.server.kindOfList(list)
	if err == nil {
		c.note(k.Canonical().GVK)
	}
	return k, as, err
}

// kind is like [Server.kind], and passes the kind to note.
func (c *liveClient) kind(gvk schema.GroupVersionKind) (*kind.Kind, error) {
	k, err := c.server.kind(gvk)
	if err == nil {
		c.note(k.Canonical().GVK)
	}
	return k, err
}

func metadataOnly(object client.Object, verb string) error {
	if _, is := object.(*metav1.PartialObjectMetadata); is {
		return fmt.Errorf("cannot %s using only metadata", verb)
	}
	return nil
}

// decodeError returns the error for an object that the server cannot decode, or that has unknown fields under strict validation.
func decodeError(k *kind.Kind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
		k.GVK.Kind, k.GVK.Version, k.GVK.Kind, err))
}

// asStatus returns an error in the form in which a client receives it. If the error has no status, the API server answers with status 500.
func asStatus(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

const modified = "the object has been modified; please apply your changes to the latest version and try again"

func versionConflict(k *kind.Kind, name string) error {
	return apierrors.NewConflict(k.GroupResource(), name, errors.New(modified))
}

func uidConflict(k *kind.Kind, name string, want, have types.UID) error {
	return apierrors.NewConflict(k.GroupResource(), name, kind.UIDMismatch(want, have))
}
