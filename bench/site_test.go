package bench

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/bench/api"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

func siteName(i int) string { return fmt.Sprintf("site-%05d", i) }

func newSite(namespace, name string) *api.Site {
	return &api.Site{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       api.SiteSpec{Image: "nginx:1.27", Replicas: 2},
	}
}

func siteLabels(s *api.Site) map[string]string {
	return map[string]string{"app": "site", "site": s.Name}
}

func deployment(s *api.Site) *appsv1.Deployment {
	labels := siteLabels(s)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &s.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "site", Image: s.Spec.Image,
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Env:   []corev1.EnvVar{{Name: "SITE", Value: s.Name}},
				}}},
			},
		},
	}
}

// service returns a Service without an address of its own. kube-apiserver counts all addresses whenever it allocates one:
// BenchmarkCreateService measures how that slows down the creation of other Services, whoever creates them.
func service(s *api.Site) *corev1.Service {
	labels := siteLabels(s)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  labels,
			Ports:     []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}
