package memoryserver

import (
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// builtInKinds are the built-in kinds in the versions that the server has.
var builtInKinds = sync.OnceValue(func() map[schema.GroupVersionKind]*kind {
	scheme := runtime.NewScheme() // client-go's own gets types added by programs
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err) // they are all its own
	}
	kinds := map[schema.GroupVersionKind]*kind{}
	for _, d := range []builtInKind{
		{like: &corev1.ConfigMap{}, resource: "configmaps"},
		{like: &corev1.Secret{}, resource: "secrets"},
		{like: &corev1.Service{}, resource: "services", status: true},
		{like: &corev1.ServiceAccount{}, resource: "serviceaccounts"},
		{like: &corev1.Pod{}, resource: "pods", status: true, counted: true},
		{like: &corev1.Namespace{}, resource: "namespaces", cluster: true, status: true},
		{like: &corev1.Event{}, resource: "events"},
		{like: &corev1.Endpoints{}, resource: "endpoints"}, //nolint:staticcheck // Deprecated, and served.
		{like: &corev1.PersistentVolumeClaim{}, resource: "persistentvolumeclaims", status: true},
		{like: &corev1.PersistentVolume{}, resource: "persistentvolumes", cluster: true, status: true},
		{like: &corev1.Node{}, resource: "nodes", cluster: true, status: true},
		{like: &corev1.LimitRange{}, resource: "limitranges"},
		{like: &corev1.ResourceQuota{}, resource: "resourcequotas", status: true},
		{like: &appsv1.Deployment{}, resource: "deployments", status: true, counted: true},
		{like: &appsv1.ReplicaSet{}, resource: "replicasets", status: true, counted: true},
		{like: &appsv1.StatefulSet{}, resource: "statefulsets", status: true, counted: true},
		{like: &appsv1.DaemonSet{}, resource: "daemonsets", status: true, counted: true},
		{like: &appsv1.ControllerRevision{}, resource: "controllerrevisions"},
		{like: &batchv1.Job{}, resource: "jobs", status: true, counted: true},
		{like: &batchv1.CronJob{}, resource: "cronjobs", status: true, counted: true},
		{like: &autoscalingv2.HorizontalPodAutoscaler{}, resource: "horizontalpodautoscalers", status: true},
		{like: &policyv1.PodDisruptionBudget{}, resource: "poddisruptionbudgets", status: true, counted: true, lock: true},
		{like: &networkingv1.Ingress{}, resource: "ingresses", status: true, counted: true},
		{like: &networkingv1.NetworkPolicy{}, resource: "networkpolicies", counted: true},
		{like: &networkingv1.IngressClass{}, resource: "ingressclasses", cluster: true, counted: true},
		{like: &rbacv1.Role{}, resource: "roles"},
		{like: &rbacv1.RoleBinding{}, resource: "rolebindings"},
		{like: &rbacv1.ClusterRole{}, resource: "clusterroles", cluster: true},
		{like: &rbacv1.ClusterRoleBinding{}, resource: "clusterrolebindings", cluster: true},
		{like: &coordinationv1.Lease{}, resource: "leases", lock: true},
		{like: &eventsv1.Event{}, resource: "events"},
		{like: &discoveryv1.EndpointSlice{}, resource: "endpointslices", counted: true},
		{like: &schedulingv1.PriorityClass{}, resource: "priorityclasses", cluster: true, counted: true},
		{like: &storagev1.StorageClass{}, resource: "storageclasses", cluster: true},
		{like: &admissionregistrationv1.ValidatingWebhookConfiguration{}, resource: "validatingwebhookconfigurations", cluster: true, counted: true, lock: true},
		{like: &admissionregistrationv1.MutatingWebhookConfiguration{}, resource: "mutatingwebhookconfigurations", cluster: true, counted: true, lock: true},
	} {
		k := d.kind(scheme)
		kinds[k.gvk] = k
	}
	return kinds
})

// builtInKind describes a built-in kind in the fewest words.
type builtInKind struct {
	like     client.Object
	resource string
	cluster  bool
	status   bool
	counted  bool
	lock     bool
}

func (d builtInKind) kind(scheme *runtime.Scheme) *kind {
	kinds, _, err := scheme.ObjectKinds(d.like)
	if err != nil {
		panic(err) // the table above names a type that client-go does not have
	}
	gvk := kinds[0]
	r := &builtIn{gvk: gvk, like: d.like, counted: d.counted, hasStatus: d.status, validName: validation.NameIsDNSSubdomain}
	k := &kind{
		gvk: gvk, resource: gvk.GroupVersion().WithResource(d.resource), singular: strings.ToLower(gvk.Kind),
		namespaced: !d.cluster, status: d.status, lock: d.lock, rules: r,
	}
	k.fields = fieldManagers(k)
	return k
}
