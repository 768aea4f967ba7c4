// Package controller reconciles Cache objects: it runs servers as they describe them.
package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

// The operator's permissions, from which `make manifests` generates the roles. The patch of caches is for finalizers and for
// annotations. The API server requires the update of caches/finalizers for an owner reference that blocks the owner's deletion.
// +kubebuilder:rbac:groups=store.example.com,resources=caches,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=store.example.com,resources=caches/status,verbs=patch
// +kubebuilder:rbac:groups=store.example.com,resources=caches/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=services;configmaps;secrets;persistentvolumeclaims,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

// Operator runs servers.
type Operator struct {
	// Registry is told of each Cache, unless it is nil.
	Registry *registry.Client
	// MinBackupInterval is the shortest interval that a schedule of backups may have. 0 means no limit.
	MinBackupInterval time.Duration
	// Clock is the clock of the backups. Default: clock.RealClock{}.
	Clock clock.PassiveClock
}

// Steps returns the steps of a pass over a Cache, in order. They are undone in reverse, so that the registry forgets a server
// before it stops.
func (o *Operator) Steps() []reconcile.NamedStep[*storev1alpha1.Cache] {
	return []reconcile.NamedStep[*storev1alpha1.Cache]{
		reconcile.Named("name", reconcile.Func(checkName)),
		reconcile.Named("pods", reconcile.Func(checkPods), reconcile.Watching(&corev1.Pod{}, podToCache)),
		reconcile.Named("workload", server()),
		reconcile.Named("status", reconcile.Func(updateStatus)),
		reconcile.Named("backup-volume", ownedresources.Ensure(
			ownedresources.Build(backupVolume).AdoptRetained().Retain(keepBackups))).
			Reporting(conditionBackupVolume).Optional(),
		reconcile.Named("backup", scheduledjobs.New(backupSchedule, backupJob).WithClock(o.clock()).
			WithMinInterval(o.MinBackupInterval)),
		registrationStep(o.Registry),
	}
}

// server returns the children that serve, and what protects them. The pods start when all that they need is there.
func server() *ownedresources.ChildSet[*storev1alpha1.Cache] {
	settings := settingsInput()
	configMap := ownedresources.BuildFrom(settings, settingsConfigMap)
	secret := ownedresources.Build(passwordSecret).Generate(passwordKey, passwordLength, passwordVersion).Generate(saltKey, passwordLength)
	headless := ownedresources.Build(service)
	priority := ownedresources.Build(priorityClass).Anywhere().Recreate()
	password := secret.Live()
	read := ownedresources.Combine(func(v *ownedresources.Values[*storev1alpha1.Cache]) configuration {
		return configuration{settings.Value(v), password.Value(v)}
	}, settings, password)
	return ownedresources.Ensure(configMap, secret, headless, priority,
		ownedresources.BuildFrom(read, statefulSet).ExpandVolumes().
			KeepWhileMissing(keepSettings).After(configMap, secret, headless, priority),
		ownedresources.Build(disruptionBudget),
		ownedresources.Build(networkPolicy),
		ownedresources.Build(serviceMonitor).IfServed("Monitored").Kind(serviceMonitorKind))
}

func (o *Operator) clock() clock.PassiveClock {
	if o.Clock == nil {
		return clock.RealClock{}
	}
	return o.Clock
}

// SetupWithManager adds the controller to a manager. The manager's options should come from [Cache] and [Client].
func (o *Operator) SetupWithManager(mgr ctrl.Manager) error {
	return reconcile.For(mgr, o.Steps()...).Complete()
}

// Cache returns cache options for some namespaces, or for all if none is given. The only Secrets, workloads and pods in the cache
// are the operator's own. ConfigMaps are all there, since a Cache may refer to any: see [LargeValues].
func Cache(namespaces ...string) cache.Options {
	options := reconcile.CacheOptions(namespaces...)
	options.ByObject = ownedresources.OnlyChildren(&storev1alpha1.Cache{}, &corev1.Secret{}, &appsv1.StatefulSet{}, &corev1.Service{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{})
	options.ByObject[&corev1.Pod{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{labelName: kindLabels[labelName]})}
	return options
}

// LargeValues is the size in bytes above which the cache has hashes in place of the values of a Secret or a ConfigMap. Anybody can give a Secret the
// labels of the operator's own.
const LargeValues = 64 << 10

// Client returns client options: ServiceMonitors, which have no Go type here, are read from the cache too.
func Client() client.Options {
	return client.Options{Cache: &client.CacheOptions{Unstructured: true}}
}
