// Package builtin has the built-in kinds of the server in memory. Each file has one kind or several. Their defaults and validation are
// written by hand, after the real API server.
package builtin

import (
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// descriptions are the built-in kinds that the server has. The kinds whose descriptions stand directly in this list have no defaults. Only
// their metadata is validated.
var descriptions = []description{
	configMapKind, secretKind, serviceKind, podKind, namespaceKind, persistentVolumeClaimKind,
	deploymentKind, replicaSetKind, statefulSetKind, daemonSetKind, jobKind, cronJobKind,
	autoscalerKind, disruptionBudgetKind, ingressKind, networkPolicyKind, ingressClassKind,
	roleKind, roleBindingKind, clusterRoleKind, clusterRoleBindingKind, endpointSliceKind, leaseKind,
	priorityClassKind, storageClassKind, controllerRevisionKind,
	{prototype: &corev1.ServiceAccount{}, resource: "serviceaccounts"},
	{prototype: &corev1.Event{}, resource: "events", createOnUpdate: true},
	{prototype: &corev1.Endpoints{}, resource: "endpoints", createOnUpdate: true}, //nolint:staticcheck // Deprecated, and served.
	{prototype: &corev1.PersistentVolume{}, resource: "persistentvolumes", clusterScoped: true, hasStatus: true},
	{prototype: &corev1.Node{}, resource: "nodes", clusterScoped: true, hasStatus: true},
	{prototype: &corev1.LimitRange{}, resource: "limitranges", createOnUpdate: true},
	{prototype: &corev1.ResourceQuota{}, resource: "resourcequotas", hasStatus: true},
	{prototype: &eventsv1.Event{}, resource: "events", createOnUpdate: true},
	{prototype: &admissionregistrationv1.ValidatingWebhookConfiguration{}, resource: "validatingwebhookconfigurations", clusterScoped: true, hasGeneration: true, requireVersion: true, behaviour: behaviour{anyFinalizer: true}},
	{prototype: &admissionregistrationv1.MutatingWebhookConfiguration{}, resource: "mutatingwebhookconfigurations", clusterScoped: true, hasGeneration: true, requireVersion: true, behaviour: behaviour{anyFinalizer: true}},
}

// Kinds returns the built-in kinds. The map is shared and must not be changed.
var Kinds = sync.OnceValue(func() map[schema.GroupVersionKind]*kind.Kind {
	scheme := runtime.NewScheme() // a scheme of its own, since programs may add types to the scheme of client-go
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err) // cannot happen: client-go adds its own types
	}
	kinds := map[schema.GroupVersionKind]*kind.Kind{}
	for _, d := range descriptions {
		k := d.kind(scheme)
		kinds[k.GVK] = k
	}
	return kinds
})

// description is a built-in kind in short form. A zero value is what most kinds have.
type description struct {
	prototype        client.Object
	resource         string
	clusterScoped    bool // not in a namespace
	hasStatus        bool // has a status subresource
	hasGeneration    bool // has a generation
	hasScale         bool // has a scale subresource
	requireVersion   bool // an update must name the resource version
	orphanDependents bool // a deletion orphans its dependents unless its options say otherwise
	createOnUpdate   bool // an update creates what is not there
	behaviour        behaviour

	// statusResets are the paths that a write of the status resets in addition to the spec.
	statusResets []fieldpath.Path
}

func (d description) kind(scheme *runtime.Scheme) *kind.Kind {
	kinds, _, err := scheme.ObjectKinds(d.prototype)
	if err != nil {
		panic(err) // cannot happen: the type is in client-go
	}
	gvk := kinds[0]
	if d.behaviour.validateName == nil {
		d.behaviour.validateName = validation.NameIsDNSSubdomain
	}
	k := &kind.Kind{
		GVK: gvk, Resource: gvk.GroupVersion().WithResource(d.resource), Singular: strings.ToLower(gvk.Kind),
		Namespaced: !d.clusterScoped, HasStatus: d.hasStatus, HasScale: d.hasScale,
		RequireVersion: d.requireVersion, OrphanDependents: d.orphanDependents, CreateOnUpdate: d.createOnUpdate,
		Allocates: d.behaviour.allocate != nil, Selectable: selectable[gvk],
		Strategy: &strategy{
			gvk: gvk, plural: d.resource, prototype: d.prototype,
			namespaced: !d.clusterScoped, hasGeneration: d.hasGeneration, hasStatus: d.hasStatus, behaviour: d.behaviour,
		},
	}
	k.FieldManagers = kind.NewFieldManagers(k, applyschema.BuiltInTypes(), append(d.statusResets, fieldpath.MakePathOrDie("spec"))...)
	return k
}
