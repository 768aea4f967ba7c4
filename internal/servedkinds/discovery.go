package servedkinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// discoverer reads the resources of a group and version from the API server, and not from a cache.
type discoverer interface {
	resources(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error)
}

// discoveryClient sends discovery requests. It does not use client-go's discovery client, whose methods take a context only from v0.37 on.
type discoveryClient struct{ client rest.Interface }

func (d discoveryClient) resources(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	path := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"/api", gv.Version}
	}
	list := &metav1.APIResourceList{}
	return list, d.client.Get().AbsPath(path...).Do(ctx).Into(list)
}

// observation is what discovery shows of a kind. The zero value means that the kind is not served.
type observation struct {
	resource   string // the plural name of the resource; empty if the kind is not served
	namespaced bool
	definition types.UID // the UID of the CustomResourceDefinition; empty if there is none, or if it is not known

	definitionKnown bool
}

func (o observation) served() bool { return o.resource != "" }

// discover returns the resources of a group and version. If the API server does not serve the version, there are none. An error means that
// it is not known whether the version is served, for example because an aggregated API server does not answer.
func discover(ctx context.Context, d discoverer, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	list, err := d.resources(ctx, gv)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find out which kinds of %s are served: %w", gv, err)
	}
	return list.APIResources, nil
}

// neededVerbs are the verbs that a resource must have to count as served. While a CustomResourceDefinition is being deleted, its resource
// does not have the verb create.
var neededVerbs = []string{"create", "list", "watch"}

// observe looks for a kind among the resources of its group and version.
func observe(kind string, resources []metav1.APIResource) observation {
	for i := range resources {
		r := &resources[i]
		if r.Kind != kind || strings.Contains(r.Name, "/") { // a subresource may have the same kind as its resource
			continue
		}
		if slices.ContainsFunc(neededVerbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) }) {
			return observation{}
		}
		return observation{resource: r.Name, namespaced: r.Namespaced}
	}
	return observation{}
}

// checkMapping returns an error if the RESTMapper maps a kind to another resource than discovery shows. The cache uses the RESTMapper to
// find the resource of a kind.
func checkMapping(mapper meta.RESTMapper, kind schema.GroupVersionKind, observed observation) error {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		// A RESTMapper of controller-runtime has already asked the API server again. A RESTMapper of client-go does so
		// only after a reset.
		meta.MaybeResetRESTMapper(mapper)
		mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if mapping.Resource.Resource != observed.resource || namespaced != observed.namespaced {
		// The client also remembers the resource of each kind, and cannot be made to forget it.
		return fmt.Errorf("%s was served as %s and is now served as %s (namespaced: %t): restart the operator", kind, mapping.Resource.Resource, observed.resource, observed.namespaced)
	}
	return nil
}
