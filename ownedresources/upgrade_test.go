package ownedresources

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources/workload"
)

const upgradeNamespace = "upgrade"

var (
	upgradeGadget  = schema.GroupVersionKind{Group: "test.opblocks.dev", Version: "v1", Kind: "Gadget"}
	upgradeRestart = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
)

// upgradeSpec says what the owner asks for. The objects in testdata/upgrade were built for its zero value.
type upgradeSpec struct {
	old bool // as before the change
}

func (s upgradeSpec) deployment(owner *corev1.ConfigMap) *appsv1.Deployment {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", UID: "1", ResourceVersion: "7"}}
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", UID: "2", ResourceVersion: "8"}}
	web := corev1.Container{
		Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
		Ports: ContainerPorts(corev1.ServicePort{Name: "http", Port: 8080}),
	}
	if s.old {
		web.Image, web.Env = "nginx:1.26", append(web.Env, corev1.EnvVar{Name: "OLD", Value: "yes"})
	}
	d := NewDeployment(owner, nil, web)
	d.Spec.Replicas = new(int32(2))
	if _, err := SetHash(&d.Spec.Template, "example.com/uses", versionsOf(settings, password)); err != nil {
		panic(err)
	}
	return d
}

func (s upgradeSpec) service(owner *corev1.ConfigMap) *corev1.Service {
	port := corev1.ServicePort{Name: "http", Port: 8080}
	if s.old {
		port.Port = 80
	}
	return NewService(owner, nil, port)
}

func (s upgradeSpec) gadget(owner *corev1.ConfigMap) (*unstructured.Unstructured, error) {
	size := int64(0)
	if s.old {
		size = 2
	}
	u := &unstructured.Unstructured{}
	u.SetName(owner.Name)
	return u, unstructured.SetNestedMap(u.Object, map[string]any{
		"size": size, "enabled": false, "tags": []any{"x", "y"}, "parts": []any{map[string]any{"name": "a", "weight": int64(3)}},
	}, "spec")
}

// worker and password build children that do not change after their creation.
func (upgradeSpec) worker(owner *corev1.ConfigMap) *appsv1.Deployment {
	d := NewDeployment(owner, map[string]string{"app": "worker"}, corev1.Container{Name: "worker", Image: "busybox:1.36"})
	d.Name = owner.Name + "-worker"
	return d
}

func (upgradeSpec) password(owner *corev1.ConfigMap) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-password"}, StringData: map[string]string{"user": "shop"},
	}
}

// reconcile runs one reconcile of an operator that has just started.
func (s upgradeSpec) reconcile(ctx context.Context, c client.Client, owner *corev1.ConfigMap) error {
	set := Ensure(
		Build(s.deployment), Build(s.service), BuildOrError(s.gadget).Kind(upgradeGadget), Build(s.worker), Build(s.password),
	)
	set.SetName("workload")
	return set.Reconcile(ctx, c, owner)
}

// TestUpgrade restores the objects of testdata/upgrade and proves that this version does not change them: an upgrade of
// an operator sends no write and replaces no pods.
//
// Version 300916d of this module wrote these objects, on a real API server. It created all of them, changed web's
// Deployment, Service and Gadget once, by server-side apply, and restarted web's Deployment. The files contain the
// objects of the API server after that, without the fields that it sets at creation: UID, resource version, generation,
// times and cluster IPs.
func TestUpgrade(t *testing.T) {
	cp := controlPlane(t)
	require.NoError(t, cp.InstallCRDs(t.Context(), "../internal/owned/testkinds/gadgets.yaml"))
	restorer, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: upgradeNamespace}}
	require.NoError(t, restorer.Create(t.Context(), namespace))
	t.Cleanup(func() { require.NoError(t, restorer.Delete(context.Background(), namespace)) })
	restored := restoreUpgrade(t, restorer)
	require.Len(t, restored, 5)

	// The owner's UID is in the children's owner references. The owner itself is not created: the API server is asked
	// for it only when something is deleted.
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: upgradeNamespace, Name: "web", UID: restored["deployment"].GetOwnerReferences()[0].UID,
	}}
	sent := &requests.Count{}
	c, err := client.New(sent.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	for range 2 {
		err := upgradeSpec{}.reconcile(t.Context(), c, owner)
		var waiting *owned.WaitingError
		require.ErrorAs(t, err, &waiting, "no controller runs that could make the Deployments ready")
	}
	var web appsv1.Deployment
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(owner), &web))
	restarted, err := workload.Restart(t.Context(), c, &web, upgradeRestart, "restarter.example.com")
	require.NoError(t, err)
	require.False(t, restarted, "the restart was before the upgrade")

	for _, request := range sent.Sent() {
		require.True(t, strings.HasPrefix(request, "GET "), "a write after the upgrade: %s", request)
	}
	for name, before := range restored {
		after := &unstructured.Unstructured{}
		after.SetGroupVersionKind(before.GroupVersionKind())
		require.NoError(t, restorer.Get(t.Context(), client.ObjectKeyFromObject(before), after))
		require.Empty(t, cmp.Diff(before.Object, after.Object), "%s is as before, and so are its pods", name)
	}

	require.NotContains(t, restored["deployment"].GetAnnotations()[record.Applied], "created", "the change was applied")
	changed := upgradeSpec{old: true}
	require.Error(t, changed.reconcile(t.Context(), c, owner))
	require.Contains(t, sent.Sent(), "PATCH deployments", "a real change is written")
}

// restoreUpgrade creates the objects of testdata/upgrade, with their annotations, labels and managed fields. It returns
// the objects as the API server stores them, by the names of their files.
func restoreUpgrade(t *testing.T, c client.Client) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("testdata/upgrade/*.yaml")
	require.NoError(t, err)
	restored := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		obj := &unstructured.Unstructured{}
		require.NoError(t, yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)).Decode(&obj.Object))
		managedFields := obj.GetManagedFields()
		require.NotEmpty(t, managedFields)
		obj.SetManagedFields(nil)
		require.NoError(t, c.Create(t.Context(), obj))
		obj.SetManagedFields(managedFields) // instead of the entry that this test's creation made
		require.NoError(t, c.Update(t.Context(), obj))
		require.Empty(t, cmp.Diff(managedFields, withoutTimes(obj.GetManagedFields())))
		restored[strings.TrimSuffix(filepath.Base(file), ".yaml")] = obj
	}
	return restored
}

func withoutTimes(managedFields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	for i := range managedFields {
		managedFields[i].Time = nil
	}
	return managedFields
}

// TestStoredHashes checks hashes that clusters store. They were computed by version 300916d of this module. If one of
// them changed, every operator would write its children, or replace their pods, once after an upgrade.
func TestStoredHashes(t *testing.T) {
	hashes := map[string]struct {
		reason string
		value  any
		want   string
	}{
		"Nil": {
			reason: "nothing is JSON's null",
			want:   "v1:74234e98afe7498fb5daf1f36ac2d78a",
		},
		"String": {
			reason: "escapes are our own",
			value:  "a\"b\n\u00e9",
			want:   "v1:1f7cd261f41f1430559db22025e3675f",
		},
		"Map": {
			reason: "keys are sorted, and zeros count",
			value:  map[string]any{"b": []int{1, 2}, "a": map[string]bool{"x": true, "w": false}},
			want:   "v1:45fcc39cc0185f68043a5f41f77ff5a7",
		},
		"Struct": {
			reason: "fields are sorted, and quantities are in canonical form",
			value: corev1.Container{
				Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("64Mi")}},
			},
			want: "v1:d9dcc35818501b7d668c8b7e9791b3e9",
		},
		"ConfigMap": {
			reason: "an object is hashed by its content",
			value:  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"k": "v"}},
			want:   "v1:39748515163917c8bce510b718108c3e",
		},
		"Secret": {
			reason: "a Secret is hashed by its version",
			value: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u", ResourceVersion: "1"}, Data: map[string][]byte{"p": []byte("a")},
			},
			want: "v1:c0fab9eae49fee0cc3f09ac86271a9ed",
		},
		"Versions": {
			reason: "what a pod template's annotation is usually made of",
			value: versionsOf(
				&metav1.ObjectMeta{Name: "s", UID: "u", ResourceVersion: "1"}, &metav1.ObjectMeta{Name: "c", UID: "v", ResourceVersion: "2"},
			),
			want: "v1:4dc868c7082bd939185292cef6d1837e",
		},
		"Unstructured": {
			reason: "nulls do not count",
			value:  &unstructured.Unstructured{Object: map[string]any{"kind": "Gadget", "spec": map[string]any{"ratio": 1.5, "none": nil}}},
			want:   "v1:7ccf83f38e3391b1a007455e5e4cdb06",
		},
	}
	for name, tc := range hashes {
		t.Run("Hash/"+name, func(t *testing.T) {
			got, err := valuesHash([]any{tc.value})
			require.NoError(t, err)
			require.Equal(t, tc.want, got, tc.reason)
		})
	}

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f"}}
	gadget, err := upgradeSpec{}.gadget(owner)
	require.NoError(t, err)
	gadget.SetGroupVersionKind(upgradeGadget)
	annotations := map[string]struct {
		reason string
		child  client.Object
		want   string
	}{
		"Deployment": {
			reason: "the annotation says that replicas were sent",
			child:  upgradeSpec{}.deployment(owner),
			want:   "v1:created:a9c63a3afca09260f8d0713cf0b72c20:replicas",
		},
		"DeploymentWithoutReplicas": {
			reason: "replicas belong to somebody else",
			child:  upgradeSpec{}.worker(owner),
			want:   "v1:created:b576a10b00327ec650978b8c307a375f",
		},
		"Service": {
			reason: "an unset target port is not sent",
			child:  upgradeSpec{}.service(owner),
			want:   "v1:created:ac2d902c80486407f2b28312c3ca2deb",
		},
		"Secret": {
			reason: "stringData is sent as data",
			child:  upgradeSpec{}.password(owner),
			want:   "v1:created:f6fcf1d29cc41999d415a34d3439e2d9",
		},
		"NetworkPolicy": {
			reason: "an empty list item is sent",
			child: &networkingv1.NetworkPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: owner.Name},
				Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
			},
			want: "v1:created:e66d09f8a64ae707d3e94c6391bc3365",
		},
		"Unstructured": {
			reason: "an unstructured object is sent as it is",
			child:  gadget,
			want:   "v1:created:5d3d306a0b166ca80119393c89463bc1",
		},
	}
	for name, tc := range annotations {
		t.Run("record.Applied/"+name, func(t *testing.T) {
			results, err := Apply(t.Context(), fake.NewFakeClient(), owner, tc.child)
			require.NoError(t, err)
			require.Equal(t, tc.want, results[0].Object.GetAnnotations()[record.Applied], tc.reason)
		})
	}
}
