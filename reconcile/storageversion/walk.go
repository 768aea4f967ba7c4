package storageversion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldManager owns what an admission plug-in changes in an object while it is written. The write itself changes no field.
	fieldManager = "opblocks-storage-migration"

	defaultPageSize = 500

	// mostNamed is how many objects that cannot be written a message names.
	mostNamed = 5
)

// errNotServed means that nobody can read the objects of the kind.
var errNotServed = errors.New("no version is served: serve one of spec.versions")

// walk goes through all objects of a kind once.
type walk struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	rewrite  bool          // whether each object is written, and not only those with stale managers
	reader   client.Reader // reads from the API server and not from the cache
	writer   client.Client
	limiter  *rate.Limiter
	pageSize int64
	metrics  *metrics

	done    int
	refused []string // the objects that cannot be written, with the reasons; at most mostNamed
	failed  int      // how many cannot be written
}

// run lists the objects in pages and writes them. It returns an error if it has not seen all of them. Objects that cannot be written are not an
// error: the walk goes on.
func (w *walk) run(ctx context.Context) error {
	token := ""
	for {
		page, err := w.list(ctx, token)
		if next, expired := nextAfterExpiry(err); expired {
			token = next
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := w.visit(ctx, &page.Items[i]); err != nil {
				return err
			}
			w.metrics.set(w.done, w.failed, int64(len(page.Items)-1-i)+remainingAfter(page))
		}
		if token = page.Continue; token == "" {
			w.metrics.set(w.done, w.failed, 0)
			return nil
		}
	}
}

// nextAfterExpiry returns where to go on if etcd has compacted the state that a token continues (410). The API server offers a token for the
// rest of the keys in their present state. That is enough: what was created since is in the storage version. Without the token the walk begins again.
func nextAfterExpiry(err error) (token string, expired bool) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return "", false
	}
	var status apierrors.APIStatus
	errors.As(err, &status)
	return status.Status().Continue, true
}

// isAnswer reports whether the API server has answered with this error.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// remainingAfter returns the number of objects behind a page, as far as the API server says it.
func remainingAfter(page *metav1.PartialObjectMetadataList) int64 {
	if page.RemainingItemCount == nil {
		return 0
	}
	return *page.RemainingItemCount
}

// list reads the metadata of a page. If the API server cannot convert an object of the page to one version, a list of another version may work: an
// object that is stored in that version needs no conversion.
func (w *walk) list(ctx context.Context, token string) (*metav1.PartialObjectMetadataList, error) {
	var failed []error
	for _, version := range servedVersions(w.crd) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(w.version(version.Name, w.crd.Spec.Names.ListKind))
		err := w.reader.List(ctx, page, client.Limit(w.pageSize), client.Continue(token))
		if err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return page, err
		}
		failed = append(failed, fmt.Errorf("list %s in version %s: %w", w.crd.Name, version.Name, err))
	}
	if len(failed) == 0 {
		return nil, errNotServed
	}
	return nil, errors.Join(failed...)
}

func (w *walk) version(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.crd.Spec.Group, Version: version, Kind: kind}
}

// visit writes an object if it needs it. It returns an error only if the walk cannot go on.
func (w *walk) visit(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	patch, err := w.patchFor(object)
	if err == nil && patch != nil {
		if err := w.limiter.Wait(ctx); err != nil {
			return err
		}
		err = w.patch(ctx, object, patch)
	}
	switch {
	case err == nil, apierrors.IsNotFound(err):
		w.done++
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if !isAnswer(err) {
		return fmt.Errorf("write %s: %w", client.ObjectKeyFromObject(object), err)
	}
	if w.failed++; len(w.refused) < mostNamed {
		w.refused = append(w.refused, fmt.Sprintf("%s: %v", client.ObjectKeyFromObject(object), err))
	}
	return nil
}

// emptyPatch changes nothing.
var emptyPatch = []byte("{}")

// patchFor returns the patch of an object, or nil if it needs none. The patch changes nothing but the versions of managers. The API server
// stores an object again after an empty patch if the bytes differ, as they do if it is stored in another version, and stores nothing otherwise.
func (w *walk) patchFor(object *metav1.PartialObjectMetadata) ([]byte, error) {
	served := map[string]bool{}
	for _, version := range servedVersions(w.crd) {
		served[version.Name] = true
	}
	entries, stale, err := renameManagers(object.ManagedFields, w.crd.Spec.Group, served, servedVersions(w.crd)[0].Name)
	switch {
	case err != nil:
		return nil, err
	case stale:
		return json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": object.UID, "resourceVersion": object.ResourceVersion, "managedFields": entries,
		}})
	case w.rewrite:
		return emptyPatch, nil
	}
	return nil, nil
}

// patch sends a patch, to the status if the kind has that subresource: an operator has that right anyway, and webhooks for changes of
// the spec are not called. The API server ignores managedFields there, so managers are renamed by a patch of the object itself. If such an
// object has changed since it was listed, it is tried again with the live one.
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

// message names the objects that cannot be written, in the order of their names. It has no count, so that it is the same in each walk.
func (w *walk) message() string {
	more := ""
	if w.failed > len(w.refused) {
		more = "; and more"
	}
	return fmt.Sprintf("the API server refuses to write objects in version %s: change or delete them, or change the schema or the webhook that refuses them: %s%s",
		storageVersion(w.crd).Name, strings.Join(w.refused, "; "), more)
}
