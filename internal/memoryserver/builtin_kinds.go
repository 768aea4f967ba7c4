package memoryserver

import (
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// described are the built-in kinds that the server has. Those without a file of their own have
// neither defaults nor validation beyond their metadata.
var described = []builtInKind{
	configMapKind, secretKind, serviceKind, podKind, namespaceKind, persistentVolumeClaimKind,
	deploymentKind, replicaSetKind, statefulSetKind, daemonSetKind, jobKind, cronJobKind,
	autoscalerKind, disruptionBudgetKind, ingressKind, networkPolicyKind, ingressClassKind,
	roleKind, roleBindingKind, clusterRoleKind, clusterRoleBindingKind, endpointSliceKind, leaseKind,
	{like: &corev1.ServiceAccount{}, resource: "serviceaccounts"},
	{like: &corev1.Event{}, resource: "events", createOnUpdate: true},
	{like: &corev1.Endpoints{}, resource: "endpoints", createOnUpdate: true}, //nolint:staticcheck // Deprecated, and served.
	{like: &corev1.PersistentVolume{}, resource: "persistentvolumes", cluster: true, status: true},
	{like: &corev1.Node{}, resource: "nodes", cluster: true, status: true},
	{like: &corev1.LimitRange{}, resource: "limitranges", createOnUpdate: true},
	{like: &corev1.ResourceQuota{}, resource: "resourcequotas", status: true},
	{like: &appsv1.ControllerRevision{}, resource: "controllerrevisions"},
	{like: &eventsv1.Event{}, resource: "events", createOnUpdate: true},
	{like: &schedulingv1.PriorityClass{}, resource: "priorityclasses", cluster: true, counted: true},
	{like: &storagev1.StorageClass{}, resource: "storageclasses", cluster: true},
	{like: &admissionregistrationv1.ValidatingWebhookConfiguration{}, resource: "validatingwebhookconfigurations", cluster: true, counted: true, lock: true, behaviour: behaviour{anyFinalizer: true}},
	{like: &admissionregistrationv1.MutatingWebhookConfiguration{}, resource: "mutatingwebhookconfigurations", cluster: true, counted: true, lock: true, behaviour: behaviour{anyFinalizer: true}},
}

// builtInKinds are the described kinds, ready to serve.
var builtInKinds = sync.OnceValue(func() map[schema.GroupVersionKind]*kind {
	scheme := runtime.NewScheme() // client-go's own gets types added by programs
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err) // they are all its own
	}
	kinds := map[schema.GroupVersionKind]*kind{}
	for _, d := range described {
		k := d.kind(scheme)
		kinds[k.gvk] = k
	}
	return kinds
})

// builtInKind describes a built-in kind in the fewest words.
type builtInKind struct {
	like           client.Object
	resource       string
	cluster        bool // not in a namespace
	status         bool // has a status subresource
	counted        bool // has a generation
	scaled         bool // has a scale subresource
	lock           bool // an update must name the resource version
	orphans        bool // a deletion leaves its dependents alone unless it says otherwise
	createOnUpdate bool // an update creates what is not there
	behaviour      behaviour
}

func (d builtInKind) kind(scheme *runtime.Scheme) *kind {
	kinds, _, err := scheme.ObjectKinds(d.like)
	if err != nil {
		panic(err) // a type that client-go does not have
	}
	gvk := kinds[0]
	if d.behaviour.validName == nil {
		d.behaviour.validName = validation.NameIsDNSSubdomain
	}
	k := &kind{
		gvk: gvk, resource: gvk.GroupVersion().WithResource(d.resource), singular: strings.ToLower(gvk.Kind),
		namespaced: !d.cluster, status: d.status, scaled: d.scaled, lock: d.lock, orphans: d.orphans, createOnUpdate: d.createOnUpdate,
		rules: &builtIn{gvk: gvk, plural: d.resource, like: d.like, namespaced: !d.cluster, counted: d.counted, hasStatus: d.status, behaviour: d.behaviour},
	}
	k.fields = fieldManagers(k)
	return k
}
