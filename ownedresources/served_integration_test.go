package ownedresources

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// monitor is a kind with a Go type that the API server serves only while its CustomResourceDefinition is installed.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              monitorSpec `json:"spec"`
}

type monitorSpec struct {
	Interval  string   `json:"interval,omitempty"`
	Endpoints []string `json:"endpoints,omitempty"`
}

type monitorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []monitor `json:"items"`
}

func (m *monitor) DeepCopyObject() runtime.Object {
	c := *m
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Endpoints = append([]string(nil), m.Spec.Endpoints...)
	return &c
}

func (l *monitorList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*monitor))
	}
	return &c
}

// servedEnv has an operator of Shops. Each Shop owns a monitor, and a Service that comes after it.
type servedEnv struct {
	*serverEnv
	client   client.Client // the client of an administrator
	gvk      schema.GroupVersionKind
	operator ctrl.Manager
	children *ChildSet[*Shop]
	read     atomic.Pointer[error] // the error of the last read of the monitor, in a step of the operator
}

func newServedEnv(t *testing.T) *servedEnv {
	t.Helper()
	e := &servedEnv{serverEnv: newServerEnv(t)}
	e.gvk = schema.GroupVersionKind{Group: e.Namespace + ".example.com", Version: "v1", Kind: "Monitor"}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	testkinds.AddShop(scheme)
	scheme.AddKnownTypeWithName(e.gvk, &monitor{})
	scheme.AddKnownTypeWithName(e.gvk.GroupVersion().WithKind("MonitorList"), &monitorList{})
	metav1.AddToGroupVersion(scheme, e.gvk.GroupVersion())
	var err error
	e.client, err = client.New(e.Plane.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	e.operator = e.newManager(t, scheme, e.Namespace)
	monitors := Build(func(owner *Shop) *monitor {
		if !owner.Spec.Monitored {
			return nil
		}
		return &monitor{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Spec: monitorSpec{Interval: "30s", Endpoints: []string{"http"}}}
	}).IfServed("Monitoring")
	services := Build(func(owner *Shop) *corev1.Service {
		return NewService(owner, map[string]string{"app": owner.Name}, corev1.ServicePort{Name: "http", Port: 80})
	}).After(monitors)
	e.children = Ensure(services, monitors).RemoveInOrder()
	require.NoError(t, reconcile.For(e.operator,
		reconcile.Named("children", e.children),
		reconcile.Named("reader", reconcile.Func(func(ctx context.Context, c client.Client, owner *Shop) error {
			err := c.Get(ctx, client.ObjectKeyFromObject(owner), &monitor{})
			e.read.Store(&err)
			return nil
		})),
	).Complete())
	return e
}

// install creates the CustomResourceDefinition. listType is the list type of the endpoints in its schema: "atomic" or
// "set".
func (e *servedEnv) install(t *testing.T, listType string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "monitors." + e.gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: e.gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "monitors", Kind: "Monitor"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"interval":  text,
							"endpoints": {Type: "array", XListType: &listType, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
						}},
					}},
				},
			}},
		},
	}
	require.NoError(t, e.client.Create(t.Context(), crd))
	t.Cleanup(func() {
		if err := e.client.Delete(context.Background(), crd); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return crd
}

// waitFor waits until a function returns true for the owner.
func (e *servedEnv) waitFor(t *testing.T, what string, is func(*Shop) bool) {
	t.Helper()
	owner := &Shop{}
	require.Eventually(t, func() bool {
		return e.client.Get(t.Context(), types.NamespacedName{Namespace: e.Namespace, Name: "web"}, owner) == nil && is(owner)
	}, controlplane.Patience, 10*time.Millisecond, "%s", what)
}

// waitForCondition waits until the owner is ready, and until the condition Monitoring has this status and reason.
func (e *servedEnv) waitForCondition(t *testing.T, status metav1.ConditionStatus, reason string) (message string) {
	t.Helper()
	e.waitFor(t, reason, func(owner *Shop) bool {
		condition := meta.FindStatusCondition(owner.Status.Conditions, "Monitoring")
		if condition == nil || condition.Status != status || condition.Reason != reason || !meta.IsStatusConditionTrue(owner.Status.Conditions, "Ready") {
			return false
		}
		message = condition.Message
		return true
	})
	return message
}

func (e *servedEnv) exists(t *testing.T, obj client.Object) bool {
	t.Helper()
	err := e.client.Get(t.Context(), types.NamespacedName{Namespace: e.Namespace, Name: "web"}, obj)
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}

func (e *servedEnv) setMonitored(t *testing.T, wanted bool) {
	t.Helper()
	e.setSpec(t, func(s *ShopSpec) { s.Monitored = wanted })
}

func TestIfServed(t *testing.T) {
	e := newServedEnv(t)
	e.setMonitored(t, true)
	startManager(t, e.operator)

	message := e.waitForCondition(t, metav1.ConditionFalse, "KindNotServed")
	require.Equal(t, "Monitor of "+e.gvk.GroupVersion().String()+" is not served by the API server, so it is left out", message)
	require.True(t, e.exists(t, &corev1.Service{}), "what comes after the child does not wait for it")
	require.True(t, meta.IsNoMatchError(*e.read.Load()), "a step that reads the kind is neither blocked nor does it start an informer")

	for _, listType := range []string{"atomic", "set"} {
		crd := e.install(t, listType)
		require.Empty(t, e.waitForCondition(t, metav1.ConditionTrue, "KindServed"))
		live := &monitor{}
		require.True(t, e.exists(t, live))

		// The child is repaired, so its events reach the operator.
		live.Spec.Interval = "1s"
		live.Spec.Endpoints = append(live.Spec.Endpoints, "other")
		require.NoError(t, e.client.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))
		require.Eventually(t, func() bool { return e.exists(t, live) && live.Spec.Interval == "30s" }, controlplane.Patience, 10*time.Millisecond)
		want := []string{"http"}
		if listType == "set" { // the operator uses the schema of the second definition, so it keeps the items of others
			want = append(want, "other")
		}
		require.Equal(t, want, live.Spec.Endpoints)

		// The child is pruned, and created again.
		e.setMonitored(t, false)
		require.Eventually(t, func() bool { return !e.exists(t, &monitor{}) }, controlplane.Patience, 10*time.Millisecond)
		e.setMonitored(t, true)
		require.Eventually(t, func() bool { return e.exists(t, &monitor{}) }, controlplane.Patience, 10*time.Millisecond)

		// The definition is deleted while the child exists.
		require.NoError(t, e.client.Delete(t.Context(), crd))
		e.waitForCondition(t, metav1.ConditionFalse, "KindNotServed")
		require.Eventually(t, func() bool {
			return apierrors.IsNotFound(e.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		}, controlplane.Patience, 10*time.Millisecond)

		// The last write may not have reached the cache before the definition was deleted.
		e.children.set.Applier.Writes.Record(live)
	}

	require.NoError(t, e.client.Delete(t.Context(), e.Owner))
	require.Eventually(t, func() bool { return !e.exists(t, &Shop{}) }, controlplane.Patience, 10*time.Millisecond, "the finalizer of RemoveInOrder lists no kind that is not served")
}

// The children of one kind share an informer. If one of them has no option IfServed, the informer is never removed,
// so all of them must have the option.
func TestIfServedOnSomeChildren(t *testing.T) {
	cp := controlPlane(t)
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(controlplane.Patience)})
	require.NoError(t, err)
	set := Ensure(Build(constant("a", "")), Build(constant("b", "")).IfServed())
	err = set.SetupWithBuilder(mgr, ctrl.NewControllerManagedBy(mgr))
	require.EqualError(t, err, "children of kind ConfigMap: some have the option IfServed and some have not: give it to all")
}
