package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
)

// apps are the Apps of the users: each with an image and a number of replicas, with or without a port and minAvailable.
type apps struct {
	*cluster
	namespace string
	want      map[string]app
}

type app struct {
	image    string
	replicas int32
	port     bool
	budget   bool
}

func newApps(c *cluster) population {
	return &apps{cluster: c, namespace: "apps", want: map[string]app{}}
}

func (a *apps) names() []string { return slices.Sorted(maps.Keys(a.want)) }

func (a *apps) put(ctx context.Context, name string, random *rand.Rand) error {
	return a.set(ctx, name, app{
		image: fmt.Sprintf("nginx:1.%d", 16+random.IntN(10)), replicas: random.Int32N(4), port: random.IntN(2) == 0, budget: random.IntN(2) == 0,
	})
}

func (a *apps) repeat(ctx context.Context, name string) error { return a.set(ctx, name, a.want[name]) }

func (a *apps) kind() (kind schema.GroupVersionKind, namespace string) {
	return appv1.GroupVersion.WithKind("App"), a.namespace
}

func (a *apps) set(ctx context.Context, name string, w app) error {
	spec := map[string]any{"image": w.image, "replicas": int64(w.replicas)}
	if w.port {
		spec["ports"] = []any{map[string]any{"port": int64(8080), "targetPort": int64(80)}}
	}
	if w.budget {
		spec["minAvailable"] = int64(1)
	}
	err := a.apply(ctx, map[string]any{
		"apiVersion": appv1.GroupVersion.String(), "kind": "App",
		"metadata": map[string]any{"namespace": a.namespace, "name": name},
		"spec":     spec,
	})
	if err == nil {
		a.want[name] = w
	}
	return err
}

func (a *apps) drop(ctx context.Context, name string) error {
	delete(a.want, name)
	return a.remove(ctx, appv1.GroupVersion.String(), "App", a.namespace, name)
}

// differences checks that each App has its Deployment and pods, a Service if it has a port, and a PodDisruptionBudget if it has
// minAvailable.
func (a *apps) differences(ctx context.Context) ([]string, error) {
	d := a.compare(a.namespace)
	var objects appv1.AppList
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	var budgets policyv1.PodDisruptionBudgetList
	if err := a.list(ctx, a.namespace, &objects, &deployments, &services, &budgets); err != nil {
		return nil, err
	}
	pods := 0
	var exposed, budgeted []string
	for _, name := range a.names() {
		w := a.want[name]
		pods += int(w.replicas)
		if w.port {
			exposed = append(exposed, name)
		}
		if w.budget {
			budgeted = append(budgeted, name)
		}
	}
	for _, o := range deployments.Items {
		w := a.want[o.Name]
		d.equal("image of Deployment "+o.Name, w.image, o.Spec.Template.Spec.Containers[0].Image)
		d.equal("replicas of Deployment "+o.Name, w.replicas, *o.Spec.Replicas)
		d.equal("updated replicas of Deployment "+o.Name, w.replicas, o.Status.UpdatedReplicas)
	}
	for _, o := range objects.Items {
		d.equal("image of App "+o.Name, a.want[o.Name].image, o.Spec.Image)
		d.equal("replicas of App "+o.Name, a.want[o.Name].replicas, *o.Spec.Replicas)
		d.equal("observed generation of App "+o.Name, o.Generation, o.Status.ObservedGeneration)
	}
	d.same("App", a.names(), namesOf(objects.Items))
	d.same("Deployment", a.names(), namesOf(deployments.Items))
	d.same("Service", exposed, namesOf(services.Items))
	d.same("PodDisruptionBudget", budgeted, namesOf(budgets.Items))
	return d.found, d.pods(ctx, pods)
}
