package servedkinds

import (
	"context"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// permissionRetry is the delay after which CustomResourceDefinitions are watched again, if the API server has forbidden the watch.
const permissionRetry = 10 * time.Minute

// definitions watches the metadata of all CustomResourceDefinitions, if the operator is allowed to. It does not use the manager's cache: an
// informer there that is forbidden would keep the manager from starting.
type definitions struct {
	client  metadata.Interface
	changed func(group string, initial bool)

	mu       sync.Mutex
	informer toolscache.SharedIndexInformer // nil while the watch is forbidden
}

// run watches the definitions until the context ends. If the watch is forbidden, it tries again after permissionRetry.
func (d *definitions) run(ctx context.Context) {
	for ctx.Err() == nil {
		d.watch(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(permissionRetry):
		}
	}
}

// watch watches the definitions until the context ends, or the API server forbids a request.
func (d *definitions) watch(ctx context.Context) {
	logger := log.FromContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	informer := metadatainformer.NewFilteredMetadataInformer(d.client, definitionResource, metav1.NamespaceAll, 0, nil, nil).Informer()
	// These three calls can fail only if the informer has already been started.
	_ = informer.SetTransform(onlyIdentity)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !apierrors.IsForbidden(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		logger.V(1).Info("CustomResourceDefinitions cannot be watched: whether a kind is served is found out every minute", "reason", err.Error())
		stop()
	})
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { d.notify(obj, initial) },
		UpdateFunc: func(_, obj any) { d.notify(obj, false) },
		DeleteFunc: func(obj any) { d.notify(obj, false) },
	})
	d.use(informer)
	defer d.use(nil)
	informer.RunWithContext(ctx)
}

func (d *definitions) use(informer toolscache.SharedIndexInformer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.informer = informer
}

func (d *definitions) notify(obj any, initial bool) {
	name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if _, group, ok := strings.Cut(name, "."); ok && err == nil {
		d.changed(group, initial)
	}
}

// uid returns the UID of the CustomResourceDefinition of a resource, or "" if there is none. If definitions cannot be watched, or have not
// been listed yet, known is false.
func (d *definitions) uid(resource, group string) (uid types.UID, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.informer == nil || !d.informer.HasSynced() {
		return "", false
	}
	obj, _, _ := d.informer.GetStore().GetByKey(resource + "." + group)
	if definition, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return definition.UID, true
	}
	return "", true
}

// onlyIdentity keeps the name and the UID of a definition, and drops the rest to save memory. It also keeps the resource version, because
// an informer ignores updates that do not change it.
func onlyIdentity(obj any) (any, error) {
	if definition, ok := obj.(*metav1.PartialObjectMetadata); ok {
		definition.ObjectMeta = metav1.ObjectMeta{Name: definition.Name, UID: definition.UID, ResourceVersion: definition.ResourceVersion}
	}
	return obj, nil
}
