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

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/ownedresources"
)

// A ServiceMonitor is wanted only where the Prometheus operator is installed.
func ExampleIfServed() {
	kind := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	monitor := ownedresources.Build(func(cm *corev1.ConfigMap) *unstructured.Unstructured {
		fmt.Println("not called while the kind is not served")
		u := &unstructured.Unstructured{}
		u.SetName(cm.Name)
		return u
	}, ownedresources.IfServed("Monitoring")).Kind(kind)
	fmt.Println(ownedresources.Ensure(monitor).Reconcile(context.Background(), fake.NewFakeClient(), owner))
	// Output: <nil>
}

func ExampleChild_CreateOnly() {
	ctx, c := context.Background(), fake.NewFakeClient()
	size := int32(2)
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *appsv1.Deployment {
		d := ownedresources.NewDeployment(cm, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
		d.Spec.Replicas = new(size)
		return d
	}).CreateOnly(func(d *appsv1.Deployment) { d.Spec.Replicas = nil }))
	for _, size = range []int32{2, 3} {
		err := children.Reconcile(ctx, c, owner)
		var d appsv1.Deployment
		fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(owner), &d), *d.Spec.Replicas, err != nil) // it is not ready yet
	}
	// Output:
	// <nil> 2 true
	// <nil> 2 true
}

func ExampleAdopt() {
	ctx := context.Background()
	existing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-settings"}}
	c := fake.NewClientBuilder().WithObjects(existing).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-settings"}, Data: map[string]string{"mode": "sale"}}
	}, ownedresources.Adopt()))
	fmt.Println(children.Reconcile(ctx, c, owner))
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(existing), existing), metav1.IsControlledBy(existing, owner), existing.Data)
	// Output:
	// <nil>
	// <nil> true map[mode:sale]
}

// A new owner takes over what the former owner has left, and nothing else of that name.
func ExampleAdoptRetained() {
	ctx := context.Background()
	c := fake.NewClientBuilder().Build()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-data"}}
	}, ownedresources.AdoptRetained()).Retain(func(*corev1.ConfigMap) bool { return true }))
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-data"}}
	for _, uid := range []types.UID{"first", "second"} {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
		fmt.Println(c.Create(ctx, owner), children.Reconcile(ctx, c, owner))
		fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(data), data), data.Labels[record.OwnerUID])
		fmt.Println(c.Delete(ctx, owner)) // the data stay
	}
	// Output:
	// <nil> <nil>
	// <nil> first
	// <nil>
	// <nil> <nil>
	// <nil> second
	// <nil>
}

// A field that an older operator wrote goes once it is no longer wanted.
func ExampleFormerManagers() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-settings", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Data: map[string]string{"mode": "sale", "theme": "dark"},
	}
	if err := c.Create(ctx, written, client.FieldOwner("manager")); err != nil {
		fmt.Println(err)
	}
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-settings"}, Data: map[string]string{"mode": "sale"}}
	}, ownedresources.FormerManagers("manager")))
	fmt.Println(children.Reconcile(ctx, c, owner))
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(written), written), written.Data)
	// Output:
	// <nil>
	// <nil> map[mode:sale]
}

// The API server refuses to change an immutable field, so the child is deleted and created again.
func ExampleRecreate() {
	ctx := context.Background()
	immutable := func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), obj.GetName(), nil)
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Patch: immutable}).Build()
	mode := "normal"
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-settings"}, Immutable: new(true), Data: map[string]string{"mode": mode},
		}
	}, ownedresources.Recreate()))
	fmt.Println(children.Reconcile(ctx, c, owner))
	mode = "sale"
	for range 2 {
		fmt.Println(children.Reconcile(ctx, c, owner))
	}
	var settings corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &settings), settings.Data)
	// Output:
	// <nil>
	// ConfigMap shop/web-settings is recreated, since one of its fields cannot be changed
	// <nil>
	// <nil> map[mode:sale]
}

// A person replaces the password by changing the annotation.
func ExampleChild_Generate() {
	ctx := context.Background()
	shop := owner.DeepCopy()
	c := fake.NewFakeClient(shop)
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Secret {
		return ownedresources.NewSecret(cm, map[string][]byte{"user": []byte("web")})
	}).Generate("password", 32, func(cm *corev1.ConfigMap) string { return cm.Annotations["example.com/rotate-password"] }))
	var before string
	for _, mark := range []string{"", "", "2026-03-01"} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			fmt.Println(err)
		}
		shop.Annotations = map[string]string{"example.com/rotate-password": mark}
		if err := c.Update(ctx, shop); err != nil {
			fmt.Println(err)
		}
		if err := children.Reconcile(ctx, c, shop); err != nil {
			fmt.Println(err)
		}
		var secret corev1.Secret
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), &secret); err != nil {
			fmt.Println(err)
		}
		password := string(secret.Data["password"])
		fmt.Println(len(password), "characters, new:", password != before)
		before = password
	}
	// Output:
	// 32 characters, new: true
	// 32 characters, new: false
	// 32 characters, new: true
}

// The Job does not run again when its time to live has removed it.
func ExampleRunOnce() {
	ctx := context.Background()
	migration := ownedresources.Build(func(cm *corev1.ConfigMap) *batchv1.Job {
		j := ownedresources.NewJob(cm, corev1.Container{Name: "migrate", Image: "web:1.4", Args: []string{"migrate"}})
		j.Name += "-migrate"
		j.Spec.TTLSecondsAfterFinished = new(int32(60))
		return j
	}, ownedresources.RunOnce())
	children := ownedresources.Ensure(migration, ownedresources.Build(webSettings).After(migration))
	shop := owner.DeepCopy()
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	c := fake.NewClientBuilder().WithObjects(shop).WithStatusSubresource(&batchv1.Job{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			obj.SetUID(types.UID("uid-of-" + obj.GetName())) // as the API server does
			return c.Create(ctx, obj, options...)
		},
	}).Build()
	reconcile := func() {
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			fmt.Println(err)
		}
		fmt.Println(children.Reconcile(ctx, c, shop))
	}
	reconcile()

	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-migrate"}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		fmt.Println(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if err := c.Status().Update(ctx, job); err != nil {
		fmt.Println(err)
	}
	reconcile()
	if err := c.Delete(ctx, job); err != nil {
		fmt.Println(err)
	}
	reconcile()
	fmt.Println("there is a Job:", c.Get(ctx, client.ObjectKeyFromObject(job), job) == nil)
	// Output:
	// Job shop/web-migrate is not complete yet; ConfigMap shop/web-settings is not created until Job shop/web-migrate is ready
	// <nil>
	// <nil>
	// there is a Job: false
}

// The claim grows first. Then the StatefulSet is replaced, without its pods.
func ExampleExpandVolumes() {
	ctx := context.Background()
	size := "10Gi"
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *appsv1.StatefulSet {
		s := ownedresources.NewStatefulSet(cm, map[string]string{"app": "database"}, corev1.Container{Name: "redis", Image: "redis:7"})
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", size)}
		return s
	}, ownedresources.ExpandVolumes()))
	shop := owner.DeepCopy()
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	data := claim("data-web-0", size)                    // the StatefulSet's controller creates it
	data.Namespace, data.Labels, data.Status.Phase = "shop", map[string]string{"app": "database"}, corev1.ClaimBound
	c := fake.NewClientBuilder().WithObjects(shop, &data).WithInterceptorFuncs(interceptor.Funcs{Patch: refuseLargerTemplates}).Build()

	for _, size = range []string{"10Gi", "20Gi", "20Gi"} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			fmt.Println(err)
		}
		fmt.Println(children.Reconcile(ctx, c, shop))
	}
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(&data), &data), data.Spec.Resources.Requests.Storage())
	var set appsv1.StatefulSet
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(shop), &set), set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage())
	// Output:
	// StatefulSet shop/web: Replicas: 0/1
	// StatefulSet shop/web is replaced by one with larger volumes; its pods keep running
	// StatefulSet shop/web: Replicas: 0/1
	// <nil> 20Gi
	// <nil> 20Gi
}

func claim(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
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
