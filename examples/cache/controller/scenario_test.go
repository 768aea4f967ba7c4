package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, storev1alpha1.AddToScheme(scheme))
	return scheme
}

func start(p *reconciletest.Process) error {
	p.HashLargeValues(50) // less than the ConfigMap of a Cache
	client, err := registry.New("http://registry.example.com", p.RoundTripper(p.External().(*registrytest.Registry)))
	if err != nil {
		return err
	}
	return (&controller.Operator{Registry: client}).SetupWithManager(p.Manager(controller.Cache()))
}

// editChildren changes children by hand: their labels, and their owner reference.
var editChildren = reconciletest.Action{Name: "edit the children", Do: func(ctx context.Context, c client.Client) error {
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
		&schedulingv1.PriorityClassList{},
	} {
		if err := c.List(ctx, list); err != nil {
			return err
		}
		if err := apimeta.EachListItem(list, func(item runtime.Object) error {
			child := item.(client.Object)
			delete(child.GetLabels(), "app.kubernetes.io/managed-by")
			for i := range child.GetOwnerReferences() {
				child.GetOwnerReferences()[i].BlockOwnerDeletion = nil
			}
			return c.Update(ctx, child)
		}); err != nil {
			return err
		}
	}
	return nil
}}

// varying ignores what comes from the generated password (its hash on the pods), and the sizes of volumes. These do not grow if
// somebody deletes the Cache or the StatefulSet just before. That they grow otherwise is shown on the real control plane.
var varying = reconciletest.Ignore{
	SecretValues: true, Derived: []string{"store.example.com/password"},
	Fields: map[string][]string{"PersistentVolumeClaim": {"spec.resources", "status.capacity", "status.allocatedResources"}},
}

// sample returns a Cache. The fake client sets neither UID nor generation.
func sample(edits ...func(*storev1alpha1.CacheSpec)) *storev1alpha1.Cache {
	c := &storev1alpha1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cache-sample"}}
	c.Spec.Replicas = new(int32(1))
	for _, edit := range edits {
		edit(&c.Spec)
	}
	return c
}

// common returns a ConfigMap with settings.
func common(memory string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "common"}, Data: map[string]string{"maxmemory": memory}}
}
