package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// comparison collects the differences in a namespace.
type comparison struct {
	*cluster
	namespace string
	found     []string
}

func (c *cluster) compare(namespace string) *comparison {
	return &comparison{cluster: c, namespace: namespace}
}

func (d *comparison) add(format string, args ...any) {
	d.found = append(d.found, "  "+d.namespace+": "+fmt.Sprintf(format, args...))
}

func (d *comparison) equal(what string, want, got any) {
	if want != got {
		d.add("%s: %v instead of %v", what, got, want)
	}
}

// same compares names of objects.
func (d *comparison) same(kind string, want, got []string) {
	for _, name := range want {
		if !slices.Contains(got, name) {
			d.add("%s %s is missing", kind, name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			d.add("%s %s is left over", kind, name)
		}
	}
}

// pods compares the number of pods that are not terminating.
func (d *comparison) pods(ctx context.Context, want int) error {
	var pods corev1.PodList
	if err := d.list(ctx, d.namespace, &pods); err != nil {
		return err
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			running++
		}
	}
	d.equal("pods", want, running)
	return nil
}

// list reads several lists of a namespace.
func (c *cluster) list(ctx context.Context, namespace string, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	return nil
}

func namesOf[T any, P interface {
	*T
	client.Object
}](items []T) []string {
	names := make([]string, len(items))
	for i := range items {
		names[i] = P(&items[i]).GetName()
	}
	return names
}

func ready(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, "Ready"); c != nil {
		return string(c.Status)
	}
	return "absent"
}
