package httpapi

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// world is a server in memory with a transport. Its watches show changes only when deliver is called.
type world struct {
	server  *memoryserver.Server
	config  *rest.Config
	shown   int64
	watches []func(*memoryserver.Change) error
	open    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := memoryserver.New(scheme.Scheme)
	require.NoError(t, err)
	w := &world{server: server, shown: server.Revision()}
	transport := &Transport{
		Context: t.Context(), Server: server, Client: server.Client(), Reader: server.Client(), Refuse: func() error { return nil },
		Watch: func(gvk schema.GroupVersionKind, from int64, handle func(*memoryserver.Change) error) (int64, func()) {
			w.open++
			w.watches = append(w.watches, func(c *memoryserver.Change) error {
				if c.GVK != gvk || c.Revision <= from {
					return nil
				}
				return handle(c)
			})
			return w.shown, func() { w.open-- }
		},
	}
	w.config = &rest.Config{Host: "https://memory.invalid", Transport: transport, QPS: -1}
	return w
}

// deliver makes all changes visible.
func (w *world) deliver(t *testing.T) {
	t.Helper()
	for _, change := range w.server.Changes(w.shown) {
		w.shown = change.Revision
		for _, handle := range w.watches {
			require.NoError(t, handle(&change))
		}
	}
	synctest.Wait()
}

func (w *world) clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(w.config)
	require.NoError(t, err)
	return c
}

var namespaced = metav1.ObjectMeta{Namespace: "default", Name: "a"}

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{ObjectMeta: namespaced, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
		},
	}}
}

// Every verb of a typed clientset has its effect, and its answer decodes.
func TestClientset(t *testing.T) {
	contentTypes := map[string]string{
		"JSON":     runtime.ContentTypeJSON,
		"Protobuf": runtime.ContentTypeProtobuf, // the content type of requests; answers are JSON
	}
	for name, contentType := range contentTypes {
		t.Run(name, func(t *testing.T) {
			w, ctx := newWorld(t), t.Context()
			w.config.ContentType = contentType
			c := w.clientset(t)
			maps := c.CoreV1().ConfigMaps("default")

			made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Labels: map[string]string{"app": "a"}}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{FieldManager: "me"})
			require.NoError(t, err)
			require.Len(t, made.Name, len("a-")+5)
			require.Equal(t, "me", made.ManagedFields[0].Manager)
			found, err := maps.Get(ctx, made.Name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(made, found))

			stale := made.DeepCopy()
			made.Data["k"] = "2"
			_, err = maps.Update(ctx, made, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			require.NoError(t, err)
			updated, err := maps.Update(ctx, made, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NotEqual(t, stale.ResourceVersion, updated.ResourceVersion)
			_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)

			for patchType, patch := range map[types.PatchType]string{
				types.MergePatchType: `{"data":{"merge":"1"}}`, types.StrategicMergePatchType: `{"data":{"strategic":"1"}}`,
				types.JSONPatchType: `[{"op":"add","path":"/data/json","value":"1"}]`,
			} {
				_, err = maps.Patch(ctx, made.Name, patchType, []byte(patch), metav1.PatchOptions{})
				require.NoError(t, err)
			}
			applied, err := maps.Apply(ctx, applycorev1.ConfigMap(made.Name, "default").WithData(map[string]string{"apply": "1"}), metav1.ApplyOptions{FieldManager: "applier", Force: true})
			require.NoError(t, err)
			require.Equal(t, map[string]string{"k": "2", "merge": "1", "strategic": "1", "json": "1", "apply": "1"}, applied.Data)

			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: namespaced}, metav1.CreateOptions{})
			require.NoError(t, err)
			for _, o := range []metav1.ListOptions{{LabelSelector: "app=a"}, {FieldSelector: "metadata.name=" + made.Name}} {
				list, err := maps.List(ctx, o)
				require.NoError(t, err)
				require.Len(t, list.Items, 1)
			}
			everywhere, err := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{Limit: 1})
			require.NoError(t, err)
			require.Len(t, everywhere.Items, 2)

			err = maps.Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.NoError(t, maps.Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID)), PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
			require.NoError(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
			_, err = maps.Get(ctx, "a", metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			_, err = c.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			require.NoError(t, err)
		})
	}
}

func TestSubresources(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	c := w.clientset(t)
	deployments := c.AppsV1().Deployments("default")
	made, err := deployments.Create(ctx, newDeployment(), metav1.CreateOptions{})
	require.NoError(t, err)

	made.Status.Replicas, made.Spec.Replicas = 7, ptr.To[int32](9)
	made, err = deployments.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 7, made.Status.Replicas)
	require.EqualValues(t, 1, *made.Spec.Replicas)
	made, err = deployments.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"replicas":8}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	require.EqualValues(t, 8, made.Status.Replicas)

	scale, err := deployments.GetScale(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, scale.Spec.Replicas)
	scale, err = deployments.UpdateScale(ctx, "a", &autoscalingv1.Scale{ObjectMeta: namespaced, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3, scale.Spec.Replicas)
	_, err = deployments.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
	made, err = deployments.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 4, *made.Spec.Replicas)

	_, err = c.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: namespaced, Spec: newDeployment().Spec.Template.Spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CoreV1().Pods("default").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: namespaced}))
	_, err = c.CoreV1().Pods("default").Get(ctx, "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	err = c.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{ObjectMeta: namespaced}, metav1.CreateOptions{})
	require.ErrorContains(t, err, "it has the subresources status, scale, and eviction")
	_, err = c.CoreV1().Pods("default").GetLogs("a", &corev1.PodLogOptions{}).DoRaw(ctx)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// Clients without Go types, and the clients of controller-runtime, decode the answers too.
func TestOtherClients(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")

	untyped, err := dynamic.NewForConfig(w.config)
	require.NoError(t, err)
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "1"}}}
	made, err := untyped.Resource(resource).Namespace("default").Create(ctx, obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	require.Equal(t, "ConfigMap", made.GetKind())
	list, err := untyped.Resource(resource).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]unstructured.Unstructured{*made}, list.Items))
	obj.SetName("b")
	obj.Object["unknown"] = "1"
	_, err = untyped.Resource(resource).Namespace("default").Create(ctx, obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)

	parts, err := metadata.NewForConfig(w.config)
	require.NoError(t, err)
	part, err := parts.Resource(resource).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, made.GetUID(), part.UID)
	part, err = parts.Resource(resource).Namespace("default").Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"a"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"app": "a"}, part.Labels)
	partList, err := parts.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: "app=a"})
	require.NoError(t, err)
	require.Len(t, partList.Items, 1)

	own, err := client.New(rest.CopyConfig(w.config), client.Options{Scheme: scheme.Scheme}) // it sends protobuf, and maps kinds by discovery
	require.NoError(t, err)
	require.NoError(t, own.Create(ctx, &corev1.Secret{ObjectMeta: namespaced}))
	require.NoError(t, own.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.Secret{}))
	require.True(t, apierrors.IsNotFound(own.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, &corev1.Secret{})))
}

func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	c, err := discovery.NewDiscoveryClientForConfig(w.config)
	require.NoError(t, err)
	groups, resources, err := c.ServerGroupsAndResources()
	require.NoError(t, err)
	names := map[string]string{}
	for _, group := range groups {
		names[group.Name] = group.PreferredVersion.Version
	}
	require.Equal(t, "v1", names["apps"])
	require.Equal(t, "v2", names["autoscaling"])
	require.Len(t, resources, len(w.server.Versions()))
	info, err := c.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.37.0", info.GitVersion)
	list, err := c.ServerResourcesForGroupVersion("apps/v1")
	require.NoError(t, err)
	var of []string
	for _, one := range list.APIResources {
		of = append(of, one.Name)
	}
	require.Subset(t, of, []string{"deployments", "deployments/status", "deployments/scale"})

	_, err = c.ServerResourcesForGroupVersion("monitoring.coreos.com/v1")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = c.OpenAPISchema()
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	err = c.RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Do(t.Context()).Error()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// A request that the real server refuses is refused with the same code.
func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		reason              string
		method, path        string
		accept, contentType string
		body                string
		code                int
	}{
		"UnknownPath":      {reason: "no resource", method: "GET", path: "/logs", code: 404},
		"UnknownKind":      {reason: "no such kind", method: "GET", path: "/api/v1/sheep", code: 404},
		"UnknownGroup":     {reason: "no such group", method: "GET", path: "/apis/example.com/v1/sheep", code: 404},
		"NoNamespace":      {reason: "an object of the kind has one", method: "GET", path: "/api/v1/configmaps/a", code: 404},
		"CreateEverywhere": {reason: "an object needs a namespace", method: "POST", path: "/api/v1/configmaps", body: "{}", code: 405},
		"PutCollection":    {reason: "a collection is not updated", method: "PUT", path: "/api/v1/namespaces/default/configmaps", body: "{}", code: 405},
		"OnlyTable":        {reason: "no answer is a Table", method: "GET", path: "/api/v1/configmaps", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", code: 406},
		"OnlyProtobuf":     {reason: "answers are JSON", method: "GET", path: "/api/v1/configmaps", accept: "application/vnd.kubernetes.protobuf", code: 406},
		"KubectlTable":     {reason: "kubectl accepts plain JSON too", method: "GET", path: "/api/v1/configmaps", accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", code: 200},
		"CBOR":             {reason: "client-go sends JSON after that", method: "POST", path: "/api/v1/namespaces/default/configmaps", contentType: "application/cbor", body: "x", code: 415},
		"UnknownPatch":     {reason: "a patch needs its media type", method: "PATCH", path: "/api/v1/namespaces/default/configmaps/a", contentType: "application/json", body: "{}", code: 415},
		"NotJSON":          {reason: "the body must be an object", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: "x", code: 400},
		"OtherKind":        {reason: "path and body must agree", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: `{"apiVersion":"v1","kind":"Secret"}`, code: 400},
		"OtherNamespace":   {reason: "path and body must agree", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"b"}}`, code: 400},
		"OtherName":        {reason: "path and body must agree", method: "PUT", path: "/api/v1/namespaces/default/configmaps/a", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`, code: 400},
		"DryRunOfUnknown":  {reason: "All is the only value", method: "DELETE", path: "/api/v1/namespaces/default/configmaps/a?dryRun=Some", code: 400},
		"FieldSelector":    {reason: "pods can be selected by their node", method: "GET", path: "/api/v1/pods?fieldSelector=spec.nodeName=a", code: 200},
		"UnknownSelector":  {reason: "not by their priority", method: "GET", path: "/api/v1/pods?fieldSelector=spec.priority=1", code: 400},
		"WatchSelector":    {reason: "not by their priority", method: "GET", path: "/api/v1/pods?watch=1&fieldSelector=spec.priority=1", code: 400},
		"LabelSelector":    {reason: "it does not parse", method: "GET", path: "/api/v1/pods?labelSelector=a=b=c", code: 400},
		"WatchVersion":     {reason: "a resource version is a number", method: "GET", path: "/api/v1/pods?watch=1&resourceVersion=x", code: 400},
		"ApplyManager":     {reason: "an apply names its field manager", method: "PATCH", path: "/api/v1/namespaces/default/configmaps/a?force=true", contentType: "application/apply-patch+yaml", body: "apiVersion: v1\nkind: ConfigMap", code: 422},
		"ApplyYAML":        {reason: "an apply may be YAML", method: "PATCH", path: "/api/v1/namespaces/default/configmaps/a?fieldManager=me", contentType: "application/apply-patch+yaml", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", code: 200},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r, err := http.NewRequestWithContext(t.Context(), tc.method, w.config.Host+tc.path, http.NoBody)
			require.NoError(t, err)
			if tc.body != "" {
				r.Body = bodyOf(tc.body)
			}
			r.Header.Set("Accept", tc.accept)
			if tc.contentType != "" {
				r.Header.Set("Content-Type", tc.contentType)
			}
			answer, err := w.config.Transport.RoundTrip(r)
			require.NoError(t, err)
			content, err := readBody(&http.Request{Body: answer.Body})
			require.NoError(t, err)
			require.Equal(t, tc.code, answer.StatusCode, "%s: %s", tc.reason, content)
		})
	}
}

// Informers of all libraries follow the watch. They show a change when it is delivered, and their watches end with the process.
func TestInformers(t *testing.T) {
	tests := map[string]func(t *testing.T, ctx context.Context, w *world) (names func() []string){
		"Clientset": func(t *testing.T, ctx context.Context, w *world) func() []string {
			factory := informers.NewSharedInformerFactoryWithOptions(w.clientset(t), 0, informers.WithNamespace("default"))
			lister := factory.Core().V1().ConfigMaps()
			lister.Informer()
			factory.StartWithContext(ctx)
			factory.WaitForCacheSync(ctx.Done())
			return func() []string { return namesOf(lister.Informer().GetStore().ListKeys()) }
		},
		"Cache": func(t *testing.T, ctx context.Context, w *world) func() []string {
			c, err := cache.New(w.config, cache.Options{Scheme: scheme.Scheme, ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{"default": {}}}}})
			require.NoError(t, err)
			_, err = c.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
			require.NoError(t, err)
			go func() { _ = c.Start(ctx) }()
			require.True(t, c.WaitForCacheSync(ctx))
			return func() []string {
				var list corev1.ConfigMapList
				require.NoError(t, c.List(ctx, &list))
				var keys []string
				for i := range list.Items {
					keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]).String())
				}
				return namesOf(keys)
			}
		},
		"Metadata": func(t *testing.T, ctx context.Context, w *world) func() []string {
			c, err := cache.New(w.config, cache.Options{Scheme: scheme.Scheme})
			require.NoError(t, err)
			part := &metav1.PartialObjectMetadata{}
			part.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			_, err = c.GetInformer(ctx, part, cache.BlockUntilSynced(false))
			require.NoError(t, err)
			go func() { _ = c.Start(ctx) }()
			require.True(t, c.WaitForCacheSync(ctx))
			return func() []string {
				list := &metav1.PartialObjectMetadataList{}
				list.SetGroupVersionKind(part.GroupVersionKind())
				require.NoError(t, c.List(ctx, list, client.InNamespace("default")))
				var keys []string
				for i := range list.Items {
					keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]).String())
				}
				return namesOf(keys)
			}
		},
	}
	for name, start := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				ctx, stop := context.WithCancel(t.Context())
				maps := w.clientset(t).CoreV1().ConfigMaps("default")
				write := func(name string) {
					_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
					require.NoError(t, err)
				}
				write("a")
				w.deliver(t)
				names := start(t, ctx, w)
				synctest.Wait()
				require.Equal(t, []string{"default/a"}, names())
				write("b")
				synctest.Wait()
				require.Equal(t, []string{"default/a"}, names(), "the change is not delivered yet")
				w.deliver(t)
				require.Equal(t, []string{"default/a", "default/b"}, names())
				require.NoError(t, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
				w.deliver(t)
				require.Equal(t, []string{"default/b"}, names())
				require.Positive(t, w.open)
				stop()
				synctest.Wait()
				require.Zero(t, w.open, "open watches")
			})
		})
	}
}

// A watch has the same selectors as a list. If an object no longer matches them, the watch sends a deletion.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t), t.Context()
		maps := w.clientset(t).CoreV1().ConfigMaps("default")
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: namespaced}, metav1.CreateOptions{})
		require.NoError(t, err)
		opened, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "app=a", ResourceVersion: made.ResourceVersion})
		require.NoError(t, err)
		for _, labels := range []string{`{"app":"a"}`, `{"more":"b"}`, `{"app":null}`, `{"app":"b"}`} {
			_, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":`+labels+`}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
		w.deliver(t)
		var events []string
		for range 3 {
			e := <-opened.ResultChan()
			events = append(events, string(e.Type)+" "+e.Object.(*corev1.ConfigMap).Name)
		}
		require.Equal(t, []string{"ADDED a", "MODIFIED a", "DELETED a"}, events)
		opened.Stop()
		synctest.Wait()
		require.Zero(t, w.open)
	})
}

func namesOf(keys []string) []string { slices.Sort(keys); return keys }

func bodyOf(content string) io.ReadCloser { return io.NopCloser(strings.NewReader(content)) }
