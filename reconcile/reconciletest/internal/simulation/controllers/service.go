package controllers

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// loadBalancerCleanup is the finalizer of a cloud provider's service controller. The controller deletes the load balancer before the
// Service is removed.
const loadBalancerCleanup = "service.kubernetes.io/load-balancer-cleanup"

// Services simulates a cloud provider that has a load balancer for each Service that asks for one.
func Services(ctx context.Context, c client.Client) error {
	var all corev1.ServiceList
	if err := c.List(ctx, &all); err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	for i := range all.Items {
		service := &all.Items[i]
		if err := stepService(ctx, c, service); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("balance Service %s: %w", client.ObjectKeyFromObject(service), err)
		}
	}
	return nil
}

// stepService adds the finalizer, and in the next step the address. When the Service needs no load balancer any more, it removes the
// finalizer. If the type changes, the API server itself removes the address.
func stepService(ctx context.Context, c client.Client, service *corev1.Service) error {
	wanted := service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.DeletionTimestamp == nil
	at := slices.Index(service.Finalizers, loadBalancerCleanup)
	switch {
	case wanted && at < 0:
		service.Finalizers = append(service.Finalizers, loadBalancerCleanup)
		return c.Update(ctx, service)
	case wanted && len(service.Status.LoadBalancer.Ingress) == 0:
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addressOf(service)}}
		return c.Status().Update(ctx, service)
	case !wanted && at >= 0:
		service.Finalizers = slices.Delete(service.Finalizers, at, at+1)
		return c.Update(ctx, service)
	}
	return nil
}

// addressOf returns an address of 198.51.100.0/24, a range for documentation. It depends only on the Service's name, so it is the same in
// all runs.
func addressOf(service *corev1.Service) string {
	hash := fnv.New32a()
	hash.Write([]byte(service.Namespace + "/" + service.Name))
	return fmt.Sprintf("198.51.100.%d", 1+hash.Sum32()%254)
}
