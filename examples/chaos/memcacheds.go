package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// memcacheds are the Memcacheds of the users, each with a size.
type memcacheds struct {
	*cluster
	namespace string
	sizes     map[string]int32
}

func newMemcacheds(c *cluster) population {
	return &memcacheds{cluster: c, namespace: "memcacheds", sizes: map[string]int32{}}
}

func (m *memcacheds) names() []string { return slices.Sorted(maps.Keys(m.sizes)) }

func (m *memcacheds) put(ctx context.Context, name string, random *rand.Rand) error {
	return m.set(ctx, name, random.Int32N(4))
}

func (m *memcacheds) repeat(ctx context.Context, name string) error {
	return m.set(ctx, name, m.sizes[name])
}

func (m *memcacheds) kind() (kind schema.GroupVersionKind, namespace string) {
	return cachev1.GroupVersion.WithKind("Memcached"), m.namespace
}

func (m *memcacheds) set(ctx context.Context, name string, size int32) error {
	err := m.apply(ctx, map[string]any{
		"apiVersion": cachev1.GroupVersion.String(), "kind": "Memcached",
		"metadata": map[string]any{"namespace": m.namespace, "name": name},
		"spec":     map[string]any{"size": int64(size)},
	})
	if err == nil {
		m.sizes[name] = size
	}
	return err
}

func (m *memcacheds) drop(ctx context.Context, name string) error {
	delete(m.sizes, name)
	return m.remove(ctx, cachev1.GroupVersion.String(), "Memcached", m.namespace, name)
}

// differences checks that each Memcached has its Deployment, Service and pods, and that the namespace contains nothing else.
func (m *memcacheds) differences(ctx context.Context) ([]string, error) {
	d := m.compare(m.namespace)
	var objects cachev1.MemcachedList
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	if err := m.list(ctx, m.namespace, &objects, &deployments, &services); err != nil {
		return nil, err
	}
	pods := 0
	for _, o := range objects.Items {
		size := m.sizes[o.Name]
		pods += int(size)
		d.equal("size of Memcached "+o.Name, size, o.Spec.Size)
		d.equal("nodes of Memcached "+o.Name, int(size), len(o.Status.Nodes))
		d.equal("Ready of Memcached "+o.Name, "True", ready(o.Status.Conditions))
		d.equal("observed generation of Memcached "+o.Name, o.Generation, o.Status.ObservedGeneration)
	}
	for _, o := range deployments.Items {
		d.equal("replicas of Deployment "+o.Name, m.sizes[o.Name], *o.Spec.Replicas)
	}
	d.same("Memcached", m.names(), namesOf(objects.Items))
	d.same("Deployment", m.names(), namesOf(deployments.Items))
	d.same("Service", m.names(), namesOf(services.Items))
	return d.found, d.pods(ctx, pods)
}
