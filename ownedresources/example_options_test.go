package ownedresources_test

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/ownedresources"
)

// A ServiceMonitor is wanted only where the Prometheus operator is installed.
func ExampleChild_IfServed() {
	kind := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	monitor := ownedresources.Build(func(shop *Shop) *unstructured.Unstructured {
		fmt.Println("not called while the kind is not served")
		u := &unstructured.Unstructured{}
		u.SetName(shop.Name)
		return u
	}).IfServed("Monitoring").Kind(kind)
	shop := webShop(ShopSpec{Monitored: true})
	fmt.Println(ownedresources.Ensure(monitor).Reconcile(context.Background(), fake.NewFakeClient(), shop))
	// Output: <nil>
}

// The replicas are set when the Deployment is created. Later they belong to others, such as an autoscaler.
func ExampleChild_CreateOnly() {
	c, shop := fake.NewFakeClient(), webShop(ShopSpec{Version: "1.27"})
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *appsv1.Deployment {
		d := ownedresources.NewDeployment(shop, nil, corev1.Container{Name: "web", Image: "nginx:" + shop.Spec.Version})
		d.Spec.Replicas = new(shop.Spec.Shards)
		return d
	}).CreateOnly(func(d *appsv1.Deployment) { d.Spec.Replicas = nil }))
	for _, shards := range []int32{2, 3} {
		shop.Spec.Shards = shards
		fmt.Println(children.Reconcile(context.Background(), c, shop)) // no controller creates pods
		fmt.Println("replicas:", *get(c, "web", &appsv1.Deployment{}).Spec.Replicas)
	}
	// Output:
	// Deployment default/web: Replicas: 0/2
	// replicas: 2
	// Deployment default/web: Replicas: 0/2
	// replicas: 2
}

func ExampleChild_Adopt() {
	c, shop := fake.NewFakeClient(), webShop(ShopSpec{Content: "sale"})
	existing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-settings"}}
	must(c.Create(context.Background(), existing))

	children := ownedresources.Ensure(ownedresources.Build(newSettings).Adopt())
	fmt.Println(children.Reconcile(context.Background(), c, shop))
	settings := get(c, "web-settings", &corev1.ConfigMap{})
	fmt.Println(metav1.IsControlledBy(settings, shop), settings.Data)
	// Output:
	// <nil>
	// true map[content:sale]
}

// A new owner takes over what the former owner, a deleted owner of the same name, has left. It takes over nothing
// else of that name.
func ExampleChild_AdoptRetained() {
	ctx, c := context.Background(), fake.NewFakeClient()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shop.Name + "-data"}}
	}).AdoptRetained().Retain(func(shop *Shop) bool { return shop.Spec.KeepData }))
	for _, uid := range []types.UID{"first", "second"} {
		shop := webShop(ShopSpec{KeepData: true})
		shop.UID = uid
		must(c.Create(ctx, shop))
		must(children.Reconcile(ctx, c, shop))
		fmt.Println("owner of the data:", get(c, "web-data", &corev1.ConfigMap{}).Labels["opblocks.dev/owner-uid"])
		must(c.Delete(ctx, shop)) // the data stays
	}
	// Output:
	// owner of the data: first
	// owner of the data: second
}

// A field that an older operator set, and that is not desired any more, is removed.
func ExampleChild_FormerManagers() {
	ctx, shop := context.Background(), webShop(ShopSpec{Content: "sale"})
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	written := newSettings(shop)
	written.Data["theme"] = "dark"
	must(controllerutil.SetControllerReference(shop, written, c.Scheme()))
	must(c.Create(ctx, written, client.FieldOwner("manager"))) // the older operator

	children := ownedresources.Ensure(ownedresources.Build(newSettings).FormerManagers("manager"))
	fmt.Println(children.Reconcile(ctx, c, shop))
	fmt.Println(get(c, "web-settings", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// map[content:sale]
}

// The API server refuses to change an immutable field, so the child is deleted and created again.
func ExampleChild_Recreate() {
	ctx, shop := context.Background(), webShop(ShopSpec{Content: "news"})
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Patch: refusePatches}).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.ConfigMap {
		settings := newSettings(shop)
		settings.Immutable = new(true)
		return settings
	}).Recreate())
	fmt.Println(children.Reconcile(ctx, c, shop))

	shop.Spec.Content = "sale"
	fmt.Println(children.Reconcile(ctx, c, shop))
	fmt.Println(children.Reconcile(ctx, c, shop))
	fmt.Println(get(c, "web-settings", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// ConfigMap default/web-settings is recreated, since one of its fields cannot be changed
	// <nil>
	// map[content:sale]
}

// refusePatches returns the error with which the API server refuses a patch of an immutable field.
func refusePatches(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), obj.GetName(), nil)
}

// A person replaces the password by changing .spec.rotate.
func ExampleChild_Generate() {
	ctx, c, shop := context.Background(), fake.NewFakeClient(), webShop(ShopSpec{})
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.Secret {
		return ownedresources.NewSecret(shop, map[string][]byte{"user": []byte("web")})
	}).Generate("password", 32, func(shop *Shop) string { return shop.Spec.Rotate }))
	var before string
	for _, rotate := range []string{"", "", "2026-03-01"} {
		shop.Spec.Rotate = rotate
		must(children.Reconcile(ctx, c, shop))
		password := string(get(c, "web", &corev1.Secret{}).Data["password"])
		fmt.Println(len(password), "characters, new:", password != before)
		before = password
	}
	// Output:
	// 32 characters, new: true
	// 32 characters, new: false
	// 32 characters, new: true
}

// The Job's time to live is over, and it was deleted. It does not run again.
func ExampleChild_RunOnce() {
	ctx := context.Background()
	migration := ownedresources.Build(func(shop *Shop) *batchv1.Job {
		j := ownedresources.NewJob(shop, corev1.Container{Name: "migrate", Image: "web:" + shop.Spec.Version, Args: []string{"migrate"}})
		j.Name += "-migrate"
		j.Spec.TTLSecondsAfterFinished = new(int32(60))
		return j
	}).RunOnce()
	children := ownedresources.Ensure(migration, ownedresources.Build(newSettings).After(migration))
	shop := webShop(ShopSpec{Version: "1.4", Content: "sale"})
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	c := fake.NewClientBuilder().WithObjects(shop).WithStatusSubresource(&batchv1.Job{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			obj.SetUID(types.UID("uid-of-" + obj.GetName())) // the API server sets a UID too
			return c.Create(ctx, obj, options...)
		},
	}).Build()
	fmt.Println(children.Reconcile(ctx, c, get(c, "web", shop)))

	job := get(c, "web-migrate", &batchv1.Job{})
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	must(c.Status().Update(ctx, job))
	fmt.Println(children.Reconcile(ctx, c, get(c, "web", shop)))

	must(c.Delete(ctx, job))
	fmt.Println(children.Reconcile(ctx, c, get(c, "web", shop)))
	var jobs batchv1.JobList
	must(c.List(ctx, &jobs))
	fmt.Println("Jobs:", len(jobs.Items))
	// Output:
	// Job default/web-migrate is not complete yet; ConfigMap default/web-settings is not created until Job default/web-migrate is ready
	// <nil>
	// <nil>
	// Jobs: 0
}

// The storage request of the PersistentVolumeClaim is raised first. Then the StatefulSet is deleted and created
// again, and its pods keep running.
func ExampleChild_ExpandVolumes() {
	ctx := context.Background()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *appsv1.StatefulSet {
		s := ownedresources.NewStatefulSet(shop, map[string]string{"app": "database"}, corev1.Container{Name: "redis", Image: "redis:7"})
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", shop.Spec.Storage)}
		return s
	}).ExpandVolumes())
	shop := webShop(ShopSpec{Storage: new(resource.MustParse("10Gi"))})
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	data := claim("data-web-0", shop.Spec.Storage)       // the StatefulSet's controller creates it
	data.Namespace, data.Labels, data.Status.Phase = "default", map[string]string{"app": "database"}, corev1.ClaimBound
	c := fake.NewClientBuilder().WithObjects(shop, &data).WithInterceptorFuncs(interceptor.Funcs{Patch: refuseLargerTemplates}).Build()
	fmt.Println(children.Reconcile(ctx, c, get(c, "web", shop)))

	shop = get(c, "web", shop)
	shop.Spec.Storage = new(resource.MustParse("20Gi"))
	must(c.Update(ctx, shop))
	for range 2 {
		fmt.Println(children.Reconcile(ctx, c, get(c, "web", shop)))
	}
	fmt.Println(get(c, "data-web-0", &data).Spec.Resources.Requests.Storage())
	fmt.Println(get(c, "web", &appsv1.StatefulSet{}).Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage())
	// Output:
	// StatefulSet default/web: Replicas: 0/1
	// StatefulSet default/web is replaced by one with larger volumes; its pods keep running
	// StatefulSet default/web: Replicas: 0/1
	// 20Gi
	// 20Gi
}

func claim(name string, size *resource.Quantity) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *size}},
		},
	}
}

// refuseLargerTemplates refuses a change of claim templates, as the API server does.
func refuseLargerTemplates(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var live appsv1.StatefulSet
	if patch.Type() == types.ApplyPatchType && strings.Contains(string(data), `"20Gi"`) && c.Get(ctx, client.ObjectKeyFromObject(obj), &live) == nil {
		return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), obj.GetName(), nil)
	}
	return c.Patch(ctx, obj, patch, options...)
}

// A child was restored from a backup, without its owner reference. The restored owner, which has another UID, takes it back.
func ExampleChild_AdoptRestored() {
	ctx, c := context.Background(), fake.NewFakeClient()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.ConfigMap {
		return ownedresources.NewConfigMap(shop, map[string]string{"motto": "open"})
	}).AdoptRestored())
	for _, uid := range []types.UID{"first", "second"} {
		shop := webShop(ShopSpec{})
		shop.UID = uid
		must(c.Create(ctx, shop))
		must(children.Reconcile(ctx, c, shop))
		settings := get(c, "web", &corev1.ConfigMap{})
		fmt.Println("owner of the settings:", settings.OwnerReferences[0].UID)
		must(c.Delete(ctx, shop))
		settings.OwnerReferences = nil // a backup tool restores it without them
		must(c.Update(ctx, settings))
	}
	// Output:
	// owner of the settings: first
	// owner of the settings: second
}
