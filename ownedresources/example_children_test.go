package ownedresources_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// A shard that is not in the list any more is pruned.
func ExampleBuildEach() {
	ctx, c, shop := context.Background(), fake.NewFakeClient(), webShop(ShopSpec{})
	children := ownedresources.Ensure(ownedresources.BuildEach(func(shop *Shop) (all []*corev1.Service, err error) {
		for i := range shop.Spec.Shards {
			shard := ownedresources.NewService(shop, nil, corev1.ServicePort{Port: 80})
			shard.Name = fmt.Sprintf("%s-%d", shop.Name, i)
			all = append(all, shard)
		}
		return all, nil
	}))
	for _, shards := range []int32{3, 1} {
		shop.Spec.Shards = shards
		must(children.Reconcile(ctx, c, shop))
		var services corev1.ServiceList
		must(c.List(ctx, &services))
		fmt.Println(len(services.Items))
	}
	// Output:
	// 3
	// 1
}

// An apply configuration says exactly which fields are desired, also those that are zero.
func ExampleBuildApply() {
	c, shop := fake.NewFakeClient(), webShop(ShopSpec{Shards: 2})
	children := ownedresources.Ensure(ownedresources.BuildApply(&appsv1.Deployment{},
		func(shop *Shop) (*appsv1ac.DeploymentApplyConfiguration, error) {
			return appsv1ac.Deployment(shop.Name, shop.Namespace).
				WithSpec(appsv1ac.DeploymentSpec().WithReplicas(shop.Spec.Shards).WithMinReadySeconds(0)), nil
		}))
	fmt.Println(children.Reconcile(context.Background(), c, shop))
	d := get(c, "web", &appsv1.Deployment{})
	fmt.Println(*d.Spec.Replicas, metav1.IsControlledBy(d, shop))
	// Output:
	// Deployment default/web: Replicas: 0/2
	// 2 true
}

// The settings are created only when the database is ready.
func ExampleChild_After() {
	ctx, shop := context.Background(), webShop(ShopSpec{Content: "sale"})
	c := fake.NewClientBuilder().WithStatusSubresource(&appsv1.Deployment{}).Build()
	database := ownedresources.Build(newDatabase)
	settings := ownedresources.Build(newSettings).After(database)
	children := ownedresources.Ensure(settings, database)
	fmt.Println(children.Reconcile(ctx, c, shop))

	makeReady(ctx, c, "web-database")
	fmt.Println(children.Reconcile(ctx, c, shop))
	fmt.Println(get(c, "web-settings", &corev1.ConfigMap{}).Data)
	// Output:
	// Deployment default/web-database: Replicas: 0/1; ConfigMap default/web-settings is not created until Deployment default/web-database is ready
	// <nil>
	// map[content:sale]
}

// A set in a reconciler that does not use package reconcile: the reconciler adds the finalizer, and calls Finalize
// while the owner is being deleted.
func ExampleChildSet_RemoveInOrder() {
	ctx := context.Background()
	database := ownedresources.Build(func(shop *Shop) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: shop.Name + "-database"}}
	})
	settings := ownedresources.Build(newSettings).After(database)
	children := ownedresources.Ensure(database, settings).RemoveInOrder()
	shop := webShop(ShopSpec{Content: "sale"})
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	c := fake.NewFakeClient(shop)
	fmt.Println(children.Reconcile(ctx, c, get(c, "web", shop)))

	must(c.Delete(ctx, shop))
	shop = get(c, "web", shop)
	for range 3 { // the event of each deletion triggers the next call
		fmt.Println(children.Finalize(ctx, c, shop))
	}
	// Output:
	// <nil>
	// removed with Shop default/web: Secret default/web-database; waits for the deletion of ConfigMap default/web-settings, which came after
	// removed with Shop default/web: Secret default/web-database; waits for their deletion
	// <nil>
}

// One of three pods runs. The condition is then True, so the child is ready. By the rules of kstatus, which are the default,
// it would not be ready.
func ExampleChild_ReadyWhen() {
	ctx, shop := context.Background(), webShop(ShopSpec{Shards: 3})
	c := fake.NewClientBuilder().WithStatusSubresource(&appsv1.Deployment{}).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *appsv1.Deployment {
		d := newDatabase(shop)
		d.Spec.Replicas = new(shop.Spec.Shards)
		return d
	}).ReadyWhen("Available"))
	fmt.Println(children.Reconcile(ctx, c, shop))
	makeReady(ctx, c, "web-database")
	fmt.Println(children.Reconcile(ctx, c, shop))
	// Output:
	// Deployment default/web-database: condition Available is not reported yet
	// <nil>
}

func newDatabase(shop *Shop) *appsv1.Deployment {
	d := ownedresources.NewDeployment(shop, map[string]string{"app": "database"}, corev1.Container{Name: "redis", Image: "redis:7"})
	d.Name += "-database"
	return d
}

func newSettings(shop *Shop) *corev1.ConfigMap {
	settings := ownedresources.NewConfigMap(shop, map[string]string{"content": shop.Spec.Content})
	settings.Name += "-settings"
	return settings
}

// makeReady sets the status of a Deployment as its controller does when one pod runs.
func makeReady(ctx context.Context, c client.Client, name string) {
	d := get(c, name, &appsv1.Deployment{})
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	must(c.Status().Update(ctx, d))
}
