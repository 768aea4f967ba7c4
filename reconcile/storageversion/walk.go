package storageversion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldManager is the field manager of the writes. A write itself changes no field, but an admission plug-in may change
	// fields in it.
	fieldManager = "opblocks-storage-migration"

	defaultPageSize = 500

	// mostAttempts is how often a walk sends a request. client-go may repeat each of these attempts.
	mostAttempts = 3

	// mostInARow is how many objects in a row the API server may fail to write. After that, the walk assumes that a conversion webhook does
	// not run.
	mostInARow = 10
)

// errNotServed means that no version of the kind is served, so its objects cannot be read.
var errNotServed = errors.New("no version is served: serve one of spec.versions")

// errUnreadable means that the managedFields of an object have an invalid entry.
var errUnreadable = errors.New("repair the managedFields of the object")

// walk goes once through the objects of a kind.
type walk struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	rewrite  bool          // true: write each object; false: write only objects whose managers have a version that is not served
	reader   client.Reader // reads from the API server, not from the cache
	writer   client.Client
	limiter  *rate.Limiter
	clock    clock.Clock
	pause    time.Duration // the delay before a request is repeated
	pageSize int64
	metrics  *metrics

	done      int
	unwritten unwritten
	inARow    int // how many objects in a row the API server has failed to write, including the last one
}

// run lists the objects in pages and writes them. If it could not go through all objects, it returns an error. If an object cannot be
// written, the walk continues, and that is not an error of run.
func (w *walk) run(ctx context.Context) error {
	token := ""
	for {
		var page *metav1.PartialObjectMetadataList
		err := w.try(ctx, func() (err error) { page, err = w.list(ctx, token); return err })
		if next, expired := nextAfterExpiry(err); expired {
			token = next
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			object := &page.Items[i]
			if err := w.record(ctx, client.ObjectKeyFromObject(object), w.write(ctx, object)); err != nil {
				return err
			}
			w.metrics.set(w.done, len(w.unwritten.keys), int64(len(page.Items)-1-i)+remainingAfter(page))
		}
		if token = page.Continue; token == "" {
			w.metrics.set(w.done, len(w.unwritten.keys), 0)
			return nil
		}
	}
}

// retry reads and writes only the objects that an earlier walk could not write.
func (w *walk) retry(ctx context.Context, keys []client.ObjectKey) error {
	for i, key := range keys {
		var object *metav1.PartialObjectMetadata
		err := w.try(ctx, func() (err error) { object, err = w.get(ctx, key); return err })
		if err == nil {
			err = w.write(ctx, object)
		}
		if err := w.record(ctx, key, err); err != nil {
			return err
		}
		w.metrics.set(w.done, len(w.unwritten.keys), int64(len(keys)-1-i))
	}
	return nil
}

// try sends a request. If the API server cannot be reached, is busy, or has failed, try sends the request up to two more times.
func (w *walk) try(ctx context.Context, send func() error) error {
	for attempt := 1; ; attempt++ {
		err := send()
		if err == nil || ctx.Err() != nil || attempt == mostAttempts || !isTransient(err) {
			return err
		}
		timer := w.clock.NewTimer(w.pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
	}
}

// nextAfterExpiry handles the error 410, which means that etcd has compacted the state to which the token of a list belongs. It returns
// the token that the API server offers instead, with which the list continues in the present state. That state is enough, because objects
// that were created since are in the storage version. Without such a token, the walk begins again.
func nextAfterExpiry(err error) (token string, expired bool) {
	if !isExpired(err) {
		return "", false
	}
	var status apierrors.APIStatus
	errors.As(err, &status)
	return status.Status().Continue, true
}

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// remainingAfter returns how many objects follow after a page, or 0 if the API server does not say it.
func remainingAfter(page *metav1.PartialObjectMetadataList) int64 {
	if page.RemainingItemCount == nil {
		return 0
	}
	return *page.RemainingItemCount
}

// list reads the metadata of a page.
func (w *walk) list(ctx context.Context, token string) (*metav1.PartialObjectMetadataList, error) {
	page := &metav1.PartialObjectMetadataList{}
	return page, w.read(func(version string) error {
		// controller-runtime finds the resource by removing the suffix List. The list kind in the
		// CustomResourceDefinition may have another suffix.
		page.SetGroupVersionKind(w.version(version, w.crd.Spec.Names.Kind+"List"))
		if err := w.reader.List(ctx, page, client.Limit(w.pageSize), client.Continue(token)); err != nil {
			return fmt.Errorf("list %s in version %s: %w", w.crd.Name, version, err)
		}
		return nil
	})
}

// get reads the metadata of an object.
func (w *walk) get(ctx context.Context, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	return object, w.read(func(version string) error {
		object.SetGroupVersionKind(w.version(version, w.crd.Spec.Names.Kind))
		return w.reader.Get(ctx, key, object)
	})
}

// read calls in with each of the served versions until it succeeds. If the API server cannot convert an object to one version, it may
// still return the version in which the object is stored.
func (w *walk) read(in func(version string) error) error {
	var failed []error
	for _, version := range servedVersions(w.crd) {
		err := in(version.Name)
		if err == nil || judge(err) != failing || isExpired(err) || apierrors.IsNotFound(err) {
			return err
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		return errNotServed
	}
	return errors.Join(failed...)
}

func (w *walk) version(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.crd.Spec.Group, Version: version, Kind: kind}
}

// write sends the patch that an object needs, if it needs one.
func (w *walk) write(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	return w.try(ctx, func() error {
		patch, err := w.patchFor(object)
		if err != nil || patch == nil {
			return err
		}
		if err := w.limiter.Wait(ctx); err != nil {
			return err
		}
		return w.patch(ctx, object, patch)
	})
}

// record counts an object after its write. err is the error of the write, or nil. record returns an error only if the walk cannot continue.
func (w *walk) record(ctx context.Context, key client.ObjectKey, err error) error {
	if err == nil || apierrors.IsNotFound(err) && !isDenial(err) {
		w.done++
		w.inARow = 0
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	v := judge(err)
	switch v {
	case refused:
		w.inARow = 0
	case failing:
		w.inARow++
	case denied, unanswered:
	}
	if v == denied || v == unanswered || w.inARow == mostInARow {
		return fmt.Errorf("write %s: %w", key, err)
	}
	w.unwritten.add(key, v, err)
	return nil
}

// emptyPatch changes nothing.
var emptyPatch = []byte("{}")

// patchFor returns the patch of an object, or nil if the object needs none. The patch changes nothing except versions in
// managedFields. After an empty patch, the API server stores an object again only if its bytes differ. They differ if the object is
// stored in another version.
func (w *walk) patchFor(object *metav1.PartialObjectMetadata) ([]byte, error) {
	served := map[string]bool{}
	for _, version := range servedVersions(w.crd) {
		served[version.Name] = true
	}
	entries, stale, err := renameManagers(object.ManagedFields, w.crd.Spec.Group, served, servedVersions(w.crd)[0].Name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	case stale:
		return json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": object.UID, "resourceVersion": object.ResourceVersion, "managedFields": entries,
		}})
	case w.rewrite:
		return emptyPatch, nil
	}
	return nil, nil
}

// patch sends a patch. If the kind has a status subresource, an empty patch is sent to that: an operator has the permission for it
// anyway, and webhooks for changes of the spec are not called. The API server ignores managedFields in the status subresource, so a
// patch of managedFields is sent to the object itself. If the object has changed since it was listed, patch reads the live object and
// tries again.
func (w *walk) patch(ctx context.Context, object *metav1.PartialObjectMetadata, patch []byte) error {
	version := servedVersions(w.crd)[0]
	object.SetGroupVersionKind(w.version(version.Name, w.crd.Spec.Names.Kind))
	send := func() error {
		raw, to := client.RawPatch(types.MergePatchType, patch), object.DeepCopy()
		if bytes.Equal(patch, emptyPatch) && version.Subresources != nil && version.Subresources.Status != nil {
			return w.writer.Status().Patch(ctx, to, raw, client.FieldOwner(fieldManager))
		}
		return w.writer.Patch(ctx, to, raw, client.FieldOwner(fieldManager))
	}
	err := send()
	for attempt := 0; attempt < 5 && apierrors.IsConflict(err); attempt++ {
		if err = w.reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if patch, err = w.patchFor(object); err != nil || patch == nil {
			return err
		}
		err = send()
	}
	return err
}
