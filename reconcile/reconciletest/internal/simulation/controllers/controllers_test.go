package controllers_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

type step = func(ctx context.Context, c client.Client) error

// cluster is a server in memory with one simulated controller and the garbage collector.
type cluster struct {
	client.Client
	t      *testing.T
	server *memoryserver.Server
	steps  []step
}

// inCluster calls the test in a synctest bubble, in which the clock is virtual.
func inCluster(t *testing.T, test func(t *testing.T, c *cluster), steps ...step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := memoryserver.New(clientgoscheme.Scheme)
		require.NoError(t, err)
		test(t, &cluster{server.Client(), t, server, steps})
	})
}

// step takes one step, and reports whether it changed something.
func (c *cluster) step() bool {
	c.t.Helper()
	before := c.server.Revision()
	for _, step := range c.steps {
		require.NoError(c.t, step(c.t.Context(), c))
	}
	c.server.CollectGarbage()
	return c.server.Revision() != before
}

// settle takes steps until nothing changes.
func (c *cluster) settle() {
	c.t.Helper()
	for range 100 {
		if !c.step() {
			return
		}
	}
	c.t.Fatal("the controllers do not become quiet")
}

func (c *cluster) create(obj client.Object) {
	c.t.Helper()
	require.NoError(c.t, c.Create(c.t.Context(), obj))
}

// load reads an object again.
func load[T client.Object](c *cluster, obj T) T {
	c.t.Helper()
	require.NoError(c.t, c.Get(c.t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

// change reads an object, changes and updates it.
func change[T client.Object](c *cluster, obj T, edit func(T)) {
	c.t.Helper()
	load(c, obj)
	edit(obj)
	require.NoError(c.t, c.Update(c.t.Context(), obj))
}

// changeStatus is like change, and updates the status.
func changeStatus[T client.Object](c *cluster, obj T, edit func(T)) {
	c.t.Helper()
	load(c, obj)
	edit(obj)
	require.NoError(c.t, c.Status().Update(c.t.Context(), obj))
}

func (c *cluster) exists(obj client.Object) bool {
	c.t.Helper()
	err := c.Get(c.t.Context(), client.ObjectKeyFromObject(obj), obj)
	require.NoError(c.t, client.IgnoreNotFound(err))
	return err == nil
}

// pods returns the pods by name.
func (c *cluster) pods() map[string]*corev1.Pod {
	c.t.Helper()
	var list corev1.PodList
	require.NoError(c.t, c.List(c.t.Context(), &list))
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods
}

// images returns the image of each pod.
func (c *cluster) images() map[string]string {
	images := map[string]string{}
	for name, pod := range c.pods() {
		images[name] = pod.Spec.Containers[0].Image
	}
	return images
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

func claim(name, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: named(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}}
}

// assertReady asserts that all pods are ready, and returns them.
func (c *cluster) assertReady(names ...string) map[string]*corev1.Pod {
	c.t.Helper()
	pods := c.pods()
	var found []string
	for name, pod := range pods {
		found = append(found, name)
		assert.Equal(c.t, corev1.PodRunning, pod.Status.Phase, name)
	}
	assert.ElementsMatch(c.t, names, found)
	return pods
}
