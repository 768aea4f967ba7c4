package controller

import (
	"cmp"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/ownedresources/overlay"
)

// Annotations of the pods. When one of them changes, the pods are replaced.
const (
	annotationSettings = "store.example.com/settings"
	annotationPassword = "store.example.com/password"
	annotationPriority = "store.example.com/priority"
)

const (
	user           = 999 // the user of the official image; runAsNonRoot accepts only a number
	defaultImage   = "redis:7.4-alpine"
	exporterImage  = "oliver006/redis_exporter:v1.66.0"
	defaultStorage = "1Gi"
)

// dataName is the name of the volume with the data. The claim of a pod is called cache-data-NAME-0. A StatefulSet uses a claim
// that has this name already, and deletes it with itself, whoever created it. With the usual name data, the Cache db would take
// the claim data-db-0 of a Deployment, and the Cache a-b the claim data-a-b-0 of the StatefulSet b.
const dataName = "cache-data"

// protected are the fields that a podTemplate cannot change: another account has other permissions, and pods with finalizers or
// with another owner stay when the Cache is deleted.
var protected = overlay.Protect("spec.serviceAccountName", "metadata.finalizers", "metadata.ownerReferences")

// script starts the server. The first pod is the primary; the others copy from it. What is set here overrides the file.
const script = `exec redis-server /etc/cache/` + settingsFile + ` --port 6379 --dir /data --requirepass "$PASSWORD" --masterauth "$PASSWORD" ` +
	`$([ "$POD" = "$NAME-0" ] || echo --replicaof "$PRIMARY" 6379)`

// configuration is what the pods read, beside the Cache.
type configuration struct {
	settings map[string]string
	password *corev1.Secret
}

// statefulSet returns the StatefulSet of a Cache: its pods roll when settings, password or priority change.
func statefulSet(c *storev1alpha1.Cache, in configuration) (*appsv1.StatefulSet, error) {
	s := ownedresources.NewStatefulSet(c, nil, serverContainer(c), exporterContainer(c))
	s.Spec.Replicas = c.Spec.Replicas
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{dataVolume(c)}
	s.Spec.PersistentVolumeClaimRetentionPolicy = dataGoesWithCache()
	s.Spec.Template.Annotations = map[string]string{annotationPassword: passwordHash(in.password)}
	if _, err := ownedresources.SetHash(&s.Spec.Template, annotationSettings, in.settings); err != nil {
		return nil, err
	}
	pod := &s.Spec.Template.Spec
	pod.SecurityContext.RunAsUser, pod.SecurityContext.FSGroup = new(int64(user)), new(int64(user))
	pod.AutomountServiceAccountToken = new(false)
	pod.Volumes = []corev1.Volume{settingsVolume(c)}
	if c.Spec.Priority != nil {
		pod.PriorityClassName = priorityClassName(c)
		s.Spec.Template.Annotations[annotationPriority] = strconv.Itoa(int(*c.Spec.Priority))
	}
	var err error
	s.Spec.Template, err = c.Spec.PodTemplate.Apply(s.Spec.Template, s.Spec.Selector, protected)
	return s, err
}

func serverContainer(c *storev1alpha1.Cache) corev1.Container {
	return corev1.Container{
		Name:    "redis",
		Image:   cmp.Or(c.Spec.Image, defaultImage),
		Command: []string{"sh", "-c", script},
		Env: []corev1.EnvVar{
			passwordVariable(c, "PASSWORD"),
			{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "NAME", Value: c.Name},
			{Name: "PRIMARY", Value: primary(c)},
		},
		Ports:          []corev1.ContainerPort{{Name: serverPort, ContainerPort: serverPortNumber}},
		ReadinessProbe: tcpProbe(serverPort),
		LivenessProbe:  tcpProbe(serverPort),
		VolumeMounts: []corev1.VolumeMount{
			{Name: dataName, MountPath: "/data"},
			{Name: "settings", MountPath: "/etc/cache", ReadOnly: true},
		},
	}
}

func exporterContainer(c *storev1alpha1.Cache) corev1.Container {
	return corev1.Container{
		Name:  "exporter",
		Image: exporterImage,
		Env:   []corev1.EnvVar{passwordVariable(c, "REDIS_PASSWORD")},
		Ports: []corev1.ContainerPort{{Name: metricsPort, ContainerPort: metricsPortNumber}},
	}
}

func tcpProbe(port string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(port)}}}
}

func dataVolume(c *storev1alpha1.Cache) (claim corev1.PersistentVolumeClaim) {
	claim.Name = dataName
	claim.Spec = claimSpec(c.Spec.Storage)
	return claim
}

// dataGoesWithCache deletes the volumes with the StatefulSet, and keeps the volumes of pods that are scaled away.
func dataGoesWithCache() *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
}

// claimSpec returns the spec of a claim for storage of a size, 1Gi if it is nil.
func claimSpec(size *resource.Quantity) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: *cmp.Or(size, new(resource.MustParse(defaultStorage))),
		}},
	}
}

func settingsVolume(c *storev1alpha1.Cache) corev1.Volume {
	return corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: settingsName(c)},
	}}}
}
