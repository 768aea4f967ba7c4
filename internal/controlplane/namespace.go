package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateNamespace creates a namespace whose name begins with prefix, and returns the name when pods can be created in it.
func (cp *ControlPlane) CreateNamespace(ctx context.Context, prefix string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := cp.client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	if !cp.settings.controllers {
		return namespace.Name, nil
	}
	return namespace.Name, cp.wait(ctx, controllerManager, cp.defaultAccount(namespace.Name))
}

// defaultAccount asks for the ServiceAccount without which no pod can be created; the controller manager makes it.
func (cp *ControlPlane) defaultAccount(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: namespace, Name: "default"}
		return cp.client.Get(ctx, key, &corev1.ServiceAccount{})
	}
}
