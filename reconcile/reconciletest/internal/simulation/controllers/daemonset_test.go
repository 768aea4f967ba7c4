package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

func daemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: named("web"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: podTemplate("web:1"),
	}}
}

func TestDaemonSets(t *testing.T) {
	t.Run("RollingUpdate", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			d := daemonSet()
			c.create(d)
			c.settle()
			want := appsv1.DaemonSetStatus{
				ObservedGeneration: 1, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2,
			}
			assert.Empty(t, cmp.Diff(want, load(c, d).Status), "without nodes it is as if there were two")

			change(c, d, func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "web:2" })
			lowest := int32(2)
			for c.step() {
				lowest = min(lowest, load(c, d).Status.NumberReady)
			}
			assert.EqualValues(t, 1, lowest, "one at a time is replaced")
			want.ObservedGeneration = 2
			assert.Empty(t, cmp.Diff(want, load(c, d).Status))
			for name, image := range c.images() {
				assert.Equal(t, "web:2", image, name)
			}
		}, controllers.DaemonSets)
	})
	t.Run("Nodes", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": map[bool]string{true: "ssd"}[name != "c"]}}})
			}
			d := daemonSet()
			d.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			c.create(d)
			c.settle()
			assert.EqualValues(t, 2, load(c, d).Status.NumberReady, "the node selector counts")
			change(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, func(n *corev1.Node) { n.Labels = nil })
			c.settle()
			assert.Len(t, c.pods(), 1)
			assert.EqualValues(t, 1, load(c, d).Status.DesiredNumberScheduled)
		}, controllers.DaemonSets)
	})
}
