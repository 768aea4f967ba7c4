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

// A shard that falls out of the list is pruned.
func ExampleBuildEach() {
	ctx, c := context.Background(), fake.NewFakeClient()
	shards := 3
	children := ownedresources.Ensure(ownedresources.BuildEach(func(cm *corev1.ConfigMap) (all []*corev1.Service, err error) {
		for i := range shards {
			shard := ownedresources.NewService(cm, nil, corev1.ServicePort{Port: 80})
			shard.Name = fmt.Sprintf("%s-%d", cm.Name, i)
			all = append(all, shard)
		}
		return all, nil
	}))
	for _, shards = range []int{3, 1} {
		if err := children.Reconcile(ctx, c, owner); err != nil {
			fmt.Println(err)
		}
		var services corev1.ServiceList
		fmt.Println(c.List(ctx, &services), len(services.Items))
	}
	// Output:
	// <nil> 3
	// <nil> 1
}

// An apply configuration says exactly which fields are desired, also those that are zero.
func ExampleBuildApply() {
	ctx, c := context.Background(), fake.NewFakeClient()
	children := ownedresources.Ensure(ownedresources.BuildApply(&appsv1.Deployment{},
		func(cm *corev1.ConfigMap) (*appsv1ac.DeploymentApplyConfiguration, error) {
			return appsv1ac.Deployment(cm.Name, cm.Namespace).
				WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2).WithMinReadySeconds(0)), nil
		}))
	fmt.Println(children.Reconcile(ctx, c, owner))
	var d appsv1.Deployment
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(owner), &d), *d.Spec.Replicas, metav1.IsControlledBy(&d, owner))
	// Output:
	// Deployment shop/web: Replicas: 0/2
	// <nil> 2 true
}

// The settings are created only when the database is ready.
func ExampleChild_After() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithStatusSubresource(&appsv1.Deployment{}).Build()
	database := ownedresources.Build(webDatabase)
	settings := ownedresources.Build(webSettings).After(database)
	children := ownedresources.Ensure(settings, database)
	fmt.Println(children.Reconcile(ctx, c, owner))

	makeReady(ctx, c, "web-database")
	fmt.Println(children.Reconcile(ctx, c, owner))
	var created corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &created))
	// Output:
	// Deployment shop/web-database: Replicas: 0/1; ConfigMap shop/web-settings is not created until Deployment shop/web-database is ready
	// <nil>
	// <nil>
}

// A set without package reconcile: it needs the finalizer, and Finalize while the owner is being deleted.
func ExampleChildSet_RemoveInOrder() {
	ctx := context.Background()
	database := ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-database"}}
	})
	settings := ownedresources.Build(webSettings).After(database)
	children := ownedresources.Ensure(database, settings).RemoveInOrder()
	shop := owner.DeepCopy()
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	c := fake.NewClientBuilder().WithObjects(shop).Build()
	if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
		fmt.Println(err)
	}
	fmt.Println(children.Reconcile(ctx, c, shop))

	if err := c.Delete(ctx, shop); err != nil {
		fmt.Println(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
		fmt.Println(err)
	}
	for range 3 { // the event of each deletion triggers the next call
		fmt.Println(children.Finalize(ctx, c, shop))
	}
	// Output:
	// <nil>
	// removed with ConfigMap shop/web: Secret shop/web-database; waits for the deletion of ConfigMap shop/web-settings, which came after
	// removed with ConfigMap shop/web: Secret shop/web-database; waits for their deletion
	// <nil>
}

// One of three pods runs. That is enough for the condition, but not for kstatus, which is the default.
func ExampleReadyWhen() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithStatusSubresource(&appsv1.Deployment{}).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *appsv1.Deployment {
		d := webDatabase(cm)
		d.Spec.Replicas = new(int32(3))
		return d
	}, ownedresources.ReadyWhen("Available")))
	fmt.Println(children.Reconcile(ctx, c, owner))
	makeReady(ctx, c, "web-database")
	fmt.Println(children.Reconcile(ctx, c, owner))
	// Output:
	// Deployment shop/web-database: condition Available is not reported yet
	// <nil>
}

func webDatabase(cm *corev1.ConfigMap) *appsv1.Deployment {
	d := ownedresources.NewDeployment(cm, map[string]string{"app": "database"}, corev1.Container{Name: "redis", Image: "redis:7"})
	d.Name += "-database"
	return d
}

func webSettings(cm *corev1.ConfigMap) *corev1.ConfigMap {
	settings := ownedresources.NewConfigMap(cm, map[string]string{"mode": "sale"})
	settings.Name += "-settings"
	return settings
}

// makeReady sets the status of a Deployment as its controller does when one pod runs.
func makeReady(ctx context.Context, c client.Client, name string) {
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, &d); err != nil {
		fmt.Println(err)
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if err := c.Status().Update(ctx, &d); err != nil {
		fmt.Println(err)
	}
}
