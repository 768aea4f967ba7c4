package test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	sampleFile = "../config/samples/store_v1alpha1_cache.yaml"
	sampleName = "cache-sample"
)

var (
	cluster, apiServer = operatortest.ControlPlanes("../config/crd/bases", operatortest.EnforceOwnerReferences)

	scheme = operatortest.NewScheme(storev1alpha1.AddToScheme)
)

// startOperator starts the operator for some namespaces. It is stopped when the test ends.
func startOperator(t testing.TB, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	o, _ := startWithRegistry(t, access, options, namespaces...)
	return o
}

// startWithRegistry starts the operator with a registry, and returns both.
func startWithRegistry(t testing.TB, access *rest.Config, options ctrl.Options, namespaces ...string) (*operatortest.Operator, *registrytest.Registry) {
	t.Helper()
	fake := registrytest.New()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	c, err := registry.New(server.URL, server.Client().Transport)
	require.NoError(t, err)
	given := options.Client.Cache
	options.Scheme, options.Cache, options.Client = scheme, controller.Cache(namespaces...), controller.Client()
	if given != nil {
		merged := *given
		merged.Unstructured = options.Client.Cache.Unstructured
		options.Client.Cache = &merged
	}
	return operatortest.Start(t, access, options, &storev1alpha1.Cache{}, (&controller.Operator{Registry: c}).SetupWithManager,
		reconcile.HashLargeValues(controller.LargeValues)), fake
}

// user is the access of the test itself to a namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) cache(name string) *storev1alpha1.Cache {
	c := &storev1alpha1.Cache{ObjectMeta: u.Meta(name)}
	c.Spec.Replicas = new(int32(1))
	return c
}

// create creates a Cache as a user would.
func (u *user) create(t *testing.T, name string, edits ...func(*storev1alpha1.CacheSpec)) *storev1alpha1.Cache {
	t.Helper()
	c := u.cache(name)
	for _, edit := range edits {
		edit(&c.Spec)
	}
	require.NoError(t, u.Create(t.Context(), c))
	return c
}

// set edits the spec of a Cache.
func (u *user) set(t *testing.T, name string, edit func(*storev1alpha1.CacheSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.cache(name), func(c *storev1alpha1.Cache) { edit(&c.Spec) })
}

var status operatortest.StatusOf[*storev1alpha1.Cache] = func(c *storev1alpha1.Cache, conditionType string) (int64, metav1.Condition) {
	condition, _ := conditions.Get(c.Status.Conditions, conditionType)
	return c.Status.ObservedGeneration, condition
}

// settled waits until the operator has observed the present spec and Ready has the given status. It returns the object.
func (u *user) settled(t *testing.T, name string, ready metav1.ConditionStatus) *storev1alpha1.Cache {
	t.Helper()
	return status.AwaitReady(t, u, u.cache(name), ready)
}

// condition waits until a condition has a reason, and returns it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) metav1.Condition {
	t.Helper()
	return status.AwaitReason(t, u, u.cache(name), conditionType, reason)
}

// pods returns the UIDs of the pods of a Cache that are not terminating, by their names.
func (u *user) pods(t require.TestingT, name string) map[string]types.UID {
	var list corev1.PodList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace), client.MatchingLabels{"app.kubernetes.io/instance": name}))
	found := map[string]types.UID{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			found[list.Items[i].Name] = list.Items[i].UID
		}
	}
	return found
}

func gi(n string) *resource.Quantity { return new(resource.MustParse(n + "Gi")) }
