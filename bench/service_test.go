package bench

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// BenchmarkCreateService measures how long kube-apiserver takes to create a Service with and without an address of its own,
// while a namespace has few and many Services with one.
func BenchmarkCreateService(b *testing.B) {
	cp := controlplane.New(b, controlplane.Options{})
	namespace := controlplane.Namespace(b, cp)
	direct, err := client.New(cp.Config(), client.Options{Scheme: newScheme()})
	must(b, err)
	service := func(name, address string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	created := 0
	for _, size := range sizes(b, 100) {
		fewer := created
		workqueue.ParallelizeUntil(b.Context(), 8, size-fewer, func(i int) {
			must(b, direct.Create(b.Context(), service(fmt.Sprintf("existing-%d", fewer+i), "")))
		})
		created = size
		progress("created %d Services with an address", size)
		b.Run(fmt.Sprintf("objects=%d", size), func(b *testing.B) {
			inTurns(b, []string{"with-address", "headless"}, func(b *testing.B, variant string) {
				address := ""
				if variant == "headless" {
					address = corev1.ClusterIPNone
				}
				for b.Loop() {
					svc := service("measured", address)
					must(b, direct.Create(b.Context(), svc))
					b.StopTimer()
					must(b, direct.Delete(b.Context(), svc))
					b.StartTimer()
				}
			})
		})
	}
}
