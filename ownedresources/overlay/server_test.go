package overlay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/ownedresources/overlay/testdata/api"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const crdFile = "testdata/api/overlay.test.opblocks.dev_sites.yaml"

// controlPlane runs no controllers: only the tests write to it.
var controlPlane = controlplane.Shared(controlplane.Options{})

var installCRD sync.Once

func newClient(t *testing.T) (c client.Client, namespace string) {
	t.Helper()
	cp := controlPlane(t)
	installCRD.Do(func() { require.NoError(t, cp.InstallCRDs(t.Context(), crdFile)) })
	s := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(s))
	require.NoError(t, api.AddToScheme(s))
	config := cp.Config()
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: s})
	require.NoError(t, err)
	return c, controlplane.Namespace(t, cp)
}

// controller-gen has generated the CRD from a type with a field of type PodTemplate.
func TestCRD(t *testing.T) {
	b, err := os.ReadFile(crdFile)
	require.NoError(t, err)
	require.Less(t, len(b), 3000, "a field of type corev1.PodTemplateSpec takes 600,000 bytes")
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(b, &crd))
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	want := apiextensionsv1.JSONSchemaProps{
		Description: "PodTemplate is merged into the template of the pods.", Type: "object", XPreserveUnknownFields: new(true),
	}
	require.Empty(t, cmp.Diff(want, spec.Properties["podTemplate"]))
	require.Empty(t, cmp.Diff(want, spec.Properties["workers"].Items.Schema.Properties["podTemplate"]))
	require.Empty(t, spec.Required)
}

// The API server neither prunes nor changes a patch in a custom resource, whatever the patch contains.
func TestAPIServerKeepsPatch(t *testing.T) {
	c, namespace := newClient(t)
	const patch = `{"metadata": {"labels": {"$patch": "replace", "a": "b", "c": null}}, "unknown": {"x": [1, 1.5, true, null, {"y": {}}]},
		"spec": {"$setElementOrder/containers": [{"name": "web"}], "hostNetwork": null, "containers": [{"name": "web", "resources": {"limits": {"cpu": 2}}, "env": [{"name": "A", "$patch": "delete"}]}]}}`
	key := client.ObjectKey{Namespace: namespace, Name: "web"}
	requireKept := func(t *testing.T) *api.Site {
		t.Helper()
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(api.GroupVersion.WithKind("Site"))
		require.NoError(t, c.Get(t.Context(), key, u))
		kept, found, err := unstructured.NestedMap(u.Object, "spec", "podTemplate")
		require.NoError(t, err)
		require.True(t, found)
		b, err := json.Marshal(kept)
		require.NoError(t, err)
		require.JSONEq(t, patch, string(b))

		var site api.Site
		require.NoError(t, c.Get(t.Context(), key, &site))
		require.JSONEq(t, patch, string(site.Spec.PodTemplate.Raw))
		require.JSONEq(t, patch, string(site.Spec.Workers[0].PodTemplate.Raw))
		return &site
	}

	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web"}
	site := &api.Site{ObjectMeta: meta, Spec: api.SiteSpec{PodTemplate: *rawPatch(patch), Workers: []api.Worker{{Name: "a", PodTemplate: rawPatch(patch)}}}}
	require.NoError(t, c.Create(t.Context(), site))
	site = requireKept(t)

	site.Spec.Image = "nginx:1.28"
	require.NoError(t, c.Update(t.Context(), site))
	site = requireKept(t)

	before := site.DeepCopy()
	site.Spec.Image = "nginx:1.29"
	require.NoError(t, c.Patch(t.Context(), site, client.MergeFrom(before)))
	requireKept(t)

	applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "nginx:1.30"}}}
	applied.SetGroupVersionKind(api.GroupVersion.WithKind("Site"))
	applied.SetNamespace(namespace)
	applied.SetName("web")
	var podTemplate map[string]any
	require.NoError(t, json.Unmarshal([]byte(patch), &podTemplate))
	require.NoError(t, unstructured.SetNestedField(applied.Object, podTemplate, "spec", "podTemplate"))
	require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("user"), client.ForceOwnership))
	requireKept(t)

	t.Run("NotObject", func(t *testing.T) {
		wrong := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wrong"}, Spec: api.SiteSpec{PodTemplate: *rawPatch(`["a"]`)}}
		require.ErrorContains(t, c.Create(t.Context(), wrong), "must be of type object")
	})
	t.Run("NoPatch", func(t *testing.T) {
		none := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}}
		require.NoError(t, c.Create(t.Context(), none))
		require.Nil(t, none.Spec.PodTemplate.Raw)
	})
}

// A patch in a custom resource is merged here, and the result is applied by ownedresources. It leads to the same pod
// template as kubectl patch --type strategic.
func TestSameAsAPIServer(t *testing.T) {
	c, namespace := newClient(t)
	deployment := func(name string, pods corev1.PodTemplateSpec) *appsv1.Deployment {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}}
	}
	live := func(t *testing.T, name string) map[string]any {
		t.Helper()
		d := deployment(name, corev1.PodTemplateSpec{})
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		return asJSON(t, d.Spec.Template)
	}
	for name, tc := range applyCases(t) {
		t.Run(name, func(t *testing.T) {
			prefix := strings.ToLower(name)
			patch := patchOf(t, tc.patch)
			site := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefix}, Spec: api.SiteSpec{PodTemplate: *patch}}
			require.NoError(t, c.Create(t.Context(), site))
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(site), site))

			merged, err := site.Spec.PodTemplate.Apply(template(t, base), selector)
			require.NoError(t, err)
			changed, created := prefix+"-changed", prefix+"-created"
			_, err = ownedresources.Apply(t.Context(), c, site, deployment(changed, template(t, base)))
			require.NoError(t, err)
			_, err = ownedresources.Apply(t.Context(), c, site, deployment(changed, merged), deployment(created, merged))
			require.NoError(t, err)
			if diff := cmp.Diff(live(t, created), live(t, changed)); diff != "" {
				t.Errorf("-created +changed:\n%s", diff)
			}

			patched := deployment(prefix+"-patched", template(t, base))
			require.NoError(t, c.Create(t.Context(), patched))
			body := []byte(`{"spec": {"template": ` + string(patch.Raw) + `}}`)
			err = c.Patch(t.Context(), patched, client.RawPatch(types.StrategicMergePatchType, body))
			if tc.elsewhere == nil {
				require.NoError(t, err)
				if diff := cmp.Diff(live(t, patched.Name), live(t, changed)); diff != "" {
					t.Errorf("%s\n-kubectl patch +overlay:\n%s", tc.reason, diff)
				}
				return
			}
			want := *merged.DeepCopy()
			tc.elsewhere(&want)
			elsewhere := deployment(prefix+"-elsewhere", want)
			if err != nil {
				t.Log("the API server refuses its own result:", err)
				require.Error(t, c.Create(t.Context(), elsewhere))
				return
			}
			require.NoError(t, c.Create(t.Context(), elsewhere))
			if diff := cmp.Diff(live(t, elsewhere.Name), live(t, patched.Name)); diff != "" {
				t.Errorf("-the difference that is documented +kubectl patch:\n%s", diff)
			}
		})
	}
}

// Whether nulls in a patch reach the API server depends on the client, as the documentation says. $patch: delete
// always reaches it.
func TestNullsFromKubectl(t *testing.T) {
	c, _ := newClient(t)
	cp := controlPlane(t)
	file := filepath.Join(t.TempDir(), "site.yaml")
	const (
		patch   = `{"spec": {"hostNetwork": null, "affinity": {"$patch": "delete"}}}`
		dropped = `{"spec": {"affinity": {"$patch": "delete"}}}`
	)
	manifest := "{apiVersion: overlay.test.opblocks.dev/v1, kind: Site, metadata: {name: web}, spec: {podTemplate: " + patch + "}}"
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	for command, want := range map[string]string{"create": patch, "apply": dropped, "apply --server-side": patch} {
		t.Run(command, func(t *testing.T) {
			namespace := controlplane.Namespace(t, cp)
			_, err := cp.Kubectl(t.Context(), append(strings.Fields(command), "-n", namespace, "-f", file)...)
			require.NoError(t, err)
			var site api.Site
			require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &site))
			require.JSONEq(t, want, string(site.Spec.PodTemplate.Raw))
		})
	}
}
