package ownedresources_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// shop is the owner in the examples of the builders.
var shop = webShop(ShopSpec{Version: "1.4", Content: "sale", Shards: 3})

func ExampleNewDeployment() {
	d := ownedresources.NewDeployment(shop, map[string]string{"app": "web"}, corev1.Container{Name: "web", Image: "web:" + shop.Spec.Version})
	d.Spec.Replicas = new(shop.Spec.Shards)

	pod := d.Spec.Template
	fmt.Println(d.Namespace, d.Name, d.Labels)
	fmt.Println(pod.Labels, *pod.Spec.SecurityContext.RunAsNonRoot, *pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation)
	// Output:
	// default web map[app.kubernetes.io/instance:web app.kubernetes.io/managed-by:shop-operator app.kubernetes.io/name:shop]
	// map[app:web] true false
}

func ExampleNewService() {
	s := ownedresources.NewService(shop, map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
	s.Spec.ClusterIP = corev1.ClusterIPNone // headless
	fmt.Println(s.Name, s.Spec.Selector, s.Spec.Ports[0].Port)
	// Output:
	// web map[app:web] 80
}

func ExampleLabels() {
	labels := ownedresources.Labels(shop)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Println(key, labels[key])
	}
	// Output:
	// app.kubernetes.io/instance web
	// app.kubernetes.io/managed-by shop-operator
	// app.kubernetes.io/name shop
}

func ExampleLabelValue() {
	fmt.Println(ownedresources.LabelValue("web"))
	fmt.Println(ownedresources.LabelValue("a-name-that-a-custom-resource-may-well-have-but-that-no-label-may"))
	// Output:
	// web
	// a-name-that-a-custom-resource-may-well-have-but-that-510b5194b0
}

// A kind that has no builder is built from ObjectMeta and PodTemplate.
func ExampleObjectMeta() {
	account := &corev1.ServiceAccount{ObjectMeta: ownedresources.ObjectMeta(shop)}
	fmt.Println(account.Namespace, account.Name, account.Labels["app.kubernetes.io/managed-by"])
	// Output:
	// default web shop-operator
}

func ExamplePodTemplate() {
	selector := map[string]string{"app": "web"}
	set := &appsv1.ReplicaSet{ObjectMeta: ownedresources.ObjectMeta(shop)}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	set.Spec.Template = ownedresources.PodTemplate(shop, selector, corev1.Container{Name: "web", Image: "web:" + shop.Spec.Version})

	pod := set.Spec.Template
	fmt.Println(pod.Labels, *pod.Spec.SecurityContext.RunAsNonRoot, pod.Spec.Containers[0].SecurityContext.Capabilities.Drop)
	// Output:
	// map[app:web] true [ALL]
}

// A StatefulSet needs a headless Service with the same selector.
func ExampleNewStatefulSet() {
	s := ownedresources.NewStatefulSet(shop, nil, corev1.Container{Name: "redis", Image: "redis:7"})
	s.Spec.Replicas = new(shop.Spec.Shards)

	headless := ownedresources.NewService(shop, nil, corev1.ServicePort{Name: "redis", Port: 6379})
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	fmt.Println(s.Spec.ServiceName == headless.Name, maps.Equal(s.Spec.Selector.MatchLabels, headless.Spec.Selector))
	// Output:
	// true true
}

func ExampleNewDaemonSet() {
	d := ownedresources.NewDaemonSet(shop, map[string]string{"app": "agent"}, corev1.Container{Name: "agent", Image: "agent:1"})
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // every node
	fmt.Println(d.Name, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	// Output:
	// web map[app:agent] map[app:agent]
}

// The name of the Job contains the version, so another version has another Job.
func ExampleNewJob() {
	j := ownedresources.NewJob(shop, corev1.Container{Name: "migrate", Image: "web:" + shop.Spec.Version, Args: []string{"migrate"}})
	j.Name += "-migrate-" + shop.Spec.Version
	fmt.Println(j.Name, j.Spec.Template.Spec.RestartPolicy, *j.Spec.BackoffLimit)
	// Output:
	// web-migrate-1.4 Never 6
}

func ExampleNewCronJob() {
	j := ownedresources.NewCronJob(shop, "0 3 * * *", corev1.Container{Name: "backup", Image: "backup:1"})
	j.Name += "-backup"
	j.Spec.TimeZone = new("Europe/Berlin")
	fmt.Println(j.Name, j.Spec.Schedule, j.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent)
	// Output:
	// web-backup 0 3 * * * true
}

func ExampleNewConfigMap() {
	settings := ownedresources.NewConfigMap(shop, map[string]string{"content": shop.Spec.Content})
	settings.Name += "-settings"
	fmt.Println(settings.Namespace, settings.Name, settings.Data)
	// Output:
	// default web-settings map[content:sale]
}

func ExampleNewSecret() {
	access := ownedresources.NewSecret(shop, map[string][]byte{"user": []byte("web")})
	access.Immutable = new(true)
	fmt.Println(access.Namespace, access.Name, string(access.Data["user"]))
	// Output:
	// default web web
}

func ExampleNewPodDisruptionBudget() {
	budget := ownedresources.NewPodDisruptionBudget(shop, map[string]string{"app": "web"})
	fmt.Println(budget.Spec.Selector.MatchLabels, budget.Spec.MaxUnavailable)
	// Output:
	// map[app:web] 1
}

// MinAvailable is set instead of MaxUnavailable: the API server refuses a budget with both.
func ExampleNewPodDisruptionBudget_minAvailable() {
	budget := ownedresources.NewPodDisruptionBudget(shop, nil)
	budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, new(intstr.FromString("50%"))
	budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	fmt.Println(budget.Spec.MinAvailable)
	// Output:
	// 50%
}

func ExampleNewHorizontalPodAutoscaler() {
	d := ownedresources.NewDeployment(shop, nil, corev1.Container{Name: "web", Image: "web:" + shop.Spec.Version}) // without replicas
	h := ownedresources.NewHorizontalPodAutoscaler(shop, d, 10, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(60))},
		},
	})
	target := h.Spec.ScaleTargetRef
	fmt.Println(target.APIVersion, target.Kind, target.Name, h.Spec.MaxReplicas)
	// Output:
	// apps/v1 Deployment web 10
}

func ExampleNewIngress() {
	i := ownedresources.NewIngress(shop, networkingv1.IngressServiceBackend{
		Port: networkingv1.ServiceBackendPort{Name: "http"},
	}, "shop.example.com")
	i.Spec.IngressClassName = new("nginx")

	path := i.Spec.Rules[0].HTTP.Paths[0]
	fmt.Println(i.Spec.Rules[0].Host, path.Path, *path.PathType, path.Backend.Service.Name)
	// Output:
	// shop.example.com / Prefix web
}

// The pods accept connections to their port http only, from pods of the same namespace.
func ExampleNewNetworkPolicy() {
	p := ownedresources.NewNetworkPolicy(shop, map[string]string{"app": "web"}, networkingv1.NetworkPolicyIngressRule{
		From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}},
		Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("http"))}},
	})
	fmt.Println(p.Spec.PodSelector.MatchLabels, p.Spec.PolicyTypes)
	// Output:
	// map[app:web] [Ingress]
}

func ExampleContainerPorts() {
	for _, p := range ownedresources.ContainerPorts(
		corev1.ServicePort{Port: 8080, TargetPort: intstr.FromInt32(80)},
		corev1.ServicePort{Port: 9090, TargetPort: intstr.FromString("metrics")},
		corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP},
	) {
		fmt.Printf("%d %q %q\n", p.ContainerPort, p.Name, p.Protocol)
	}
	// Output:
	// 80 "" ""
	// 9090 "metrics" ""
	// 53 "" "UDP"
}

// ValidateName finds a name that the API server would refuse, so no request is sent for it.
func ExampleValidateName() {
	child := ownedresources.BuildOrError(func(shop *Shop) (*corev1.Service, error) {
		errs := ownedresources.ValidateName[corev1.Service](shop.Name, field.NewPath("metadata", "name"))
		return ownedresources.NewService(shop, nil, corev1.ServicePort{Port: 80}), errs.ToAggregate()
	})
	shop := webShop(ShopSpec{})
	shop.Name = "a-name-that-a-custom-resource-may-well-have-but-that-no-service-may"
	fmt.Println(ownedresources.Ensure(child).Reconcile(context.Background(), fake.NewFakeClient(), shop))
	// Output:
	// metadata.name: Invalid value: "a-name-that-a-custom-resource-may-well-have-but-that-no-service-may": not a name for a Service, choose another: must be no more than 63 characters
}

// The API server accepts the name of this StatefulSet, but no pod of it could ever be created.
func ExampleValidateName_statefulSet() {
	name := "a-name-that-the-api-server-accepts-but-no-label-of-a-pod"
	errs := ownedresources.ValidateName[appsv1.StatefulSet](name, field.NewPath("metadata", "name"))
	fmt.Println(errs[0].Detail)
	// Output:
	// not a name for a StatefulSet, choose another: must be no more than 52 characters
}

func ExampleValidateServicePorts() {
	errs := ownedresources.ValidateServicePorts([]corev1.ServicePort{
		{Name: "http", Port: 80}, {Name: "web", Port: 80}, {Port: 70000},
	}, field.NewPath("spec", "ports"))
	for _, err := range errs {
		fmt.Println(err)
	}
	// Output:
	// spec.ports[1]: Duplicate value: "80/TCP": 80/TCP is there twice, remove one of them
	// spec.ports[2].port: Invalid value: 70000: must be between 1 and 65535, inclusive
	// spec.ports[2].name: Required value: each of several ports needs a name
}
