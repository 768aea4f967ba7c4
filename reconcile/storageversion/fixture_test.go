package storageversion

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// withoutCluster is a control plane without Kubernetes' own storage migration.
var withoutCluster = controlplane.Shared(controlplane.Options{APIServerArgs: []string{"--runtime-config=storagemigration.k8s.io/v1=false"}})

// fixture is a kind Widget in a group of its own, with objects in the namespace of the test.
type fixture struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	c         client.WithWatch // the type that an interceptor needs
	namespace string
	group     string
	registry  *prometheus.Registry // the metrics registry of the last migrator
}

// newFixture creates objects while v1alpha1 is the storage version, and then makes v1 the storage version.
func newFixture(t *testing.T, cp *controlplane.ControlPlane, objects int) *fixture {
	t.Helper()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme.Scheme))
	c, err := client.NewWithWatch(cp.Config(), client.Options{})
	require.NoError(t, err)
	f := &fixture{t: t, cp: cp, c: c, namespace: controlplane.Namespace(t, cp)}
	f.group = f.namespace + ".example.com"
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(c.Delete(context.Background(), f.definition()))) })
	f.define(version{"v1alpha1", true, true})
	for i := range objects {
		require.NoError(t, c.Create(t.Context(), f.object("v1alpha1", fmt.Sprintf("w%d", i), 1), client.FieldOwner("creator")))
	}
	f.define(version{"v1alpha1", true, false}, version{"v1", true, true})
	return f
}

// version is a version in the CustomResourceDefinition.
type version struct {
	name            string
	served, storage bool
}

func (f *fixture) definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + f.group}}
}

// define creates or changes the CustomResourceDefinition. It returns when the served versions, and no others, can be
// read.
func (f *fixture) define(versions ...version) {
	f.t.Helper()
	ctx := f.t.Context()
	live := f.definition()
	before := f.c.Get(ctx, client.ObjectKeyFromObject(live), live)
	require.NoError(f.t, client.IgnoreNotFound(before))
	integer := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}}
	live.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: f.group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", ListKind: "ManyWidgets", Plural: "widgets", Singular: "widget"},
	}
	served := map[string]bool{"v1alpha1": false, "v1": false}
	for _, v := range versions {
		served[v.name] = v.served
		live.Spec.Versions = append(live.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v.name, Served: v.served, Storage: v.storage,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": integer, "status": integer},
			}},
		})
	}
	if before != nil {
		require.NoError(f.t, f.c.Create(ctx, live))
	} else {
		require.NoError(f.t, f.c.Update(ctx, live))
	}
	for name, isServed := range served {
		f.eventually("version "+name+" is served as defined", func(ctx context.Context) (bool, error) {
			fresh, err := client.New(f.cp.Config(), client.Options{}) // a new client has an empty RESTMapper
			if err != nil {
				return false, err
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: f.group, Version: name, Kind: "WidgetList"})
			err = fresh.List(ctx, list)
			return (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)) != isServed, nil
		})
	}
}

func (f *fixture) eventually(what string, done func(context.Context) (bool, error)) {
	f.t.Helper()
	require.NoError(f.t, wait.PollUntilContextTimeout(f.t.Context(), 20*time.Millisecond, controlplane.Patience, true, done), "waiting until %s", what)
}

// object returns an object to create or to apply. If size is 0, the field size is left out.
func (f *fixture) object(version, name string, size int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: f.group, Version: version, Kind: "Widget"})
	u.SetNamespace(f.namespace)
	u.SetName(name)
	if size != 0 {
		u.Object["spec"] = map[string]any{"size": size}
	}
	return u
}

// read returns the live object.
func (f *fixture) read(version, name string) *unstructured.Unstructured {
	f.t.Helper()
	u := f.object(version, name, 0)
	require.NoError(f.t, f.c.Get(f.t.Context(), client.ObjectKeyFromObject(u), u))
	return u
}

func (f *fixture) readDefinition() *apiextensionsv1.CustomResourceDefinition {
	f.t.Helper()
	live := f.definition()
	require.NoError(f.t, f.c.Get(f.t.Context(), client.ObjectKeyFromObject(live), live))
	return live
}

// apply applies an object with a field manager.
func (f *fixture) apply(object *unstructured.Unstructured, manager string) error {
	return f.c.Apply(f.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)
}

// migrator returns a migrator of the kind whose requests go through c, without a rate limit, in pages of two objects.
func (f *fixture) migrator(c client.Client) *migrator {
	f.t.Helper()
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, "Widget")
	require.NoError(f.t, err)
	f.registry = registry
	return &migrator{
		kind: schema.GroupKind{Group: f.group, Kind: "Widget"}, mapper: c.RESTMapper(), reader: c, writer: c, log: logr.Discard(),
		clock: clock.RealClock{}, metrics: m, limiter: rate.NewLimiter(rate.Inf, 1), pageSize: 2,
		conversions: conversions{converts: func() bool { return false }},
	}
}

// counts returns the values of the last migrator's metric: how many objects are done, refused and remaining.
func (f *fixture) counts() []float64 {
	f.t.Helper()
	families, err := f.registry.Gather()
	require.NoError(f.t, err)
	var counts []float64
	for _, metric := range families[0].GetMetric() { // they are sorted by their label
		counts = append(counts, metric.GetGauge().GetValue())
	}
	return counts
}

// finish calls step until nothing is left to do, and returns the first error.
func (f *fixture) finish(m *migrator) error {
	f.t.Helper()
	for range 10 {
		delay, err := m.step(f.t.Context())
		if err != nil || delay == idle {
			return err
		}
	}
	return errors.New("the migration does not end")
}
