package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AppSpec is the desired state of an App.
type AppSpec struct {
	// Replicas is the number of pods. If unset, an autoscaler may set it; a new App then starts with one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Image of the container, which has the App's name.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// Resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// Envs of the container. Of several with the same name the last counts.
	// +listType=atomic
	// +optional
	Envs []corev1.EnvVar `json:"envs,omitempty"`

	// EnvFrom adds all keys of a ConfigMap or Secret to the environment of the container.
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Ports of the App's Service. Without ports there is no Service. If there are several, those without a name are named
	// <protocol>-<port>. The container opens their targetPort: a number as it is; for a name, the port with this name.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.port >= 1 && p.port <= 65535)",message="every port must be from 1 to 65535"
	// +listType=atomic
	// +optional
	Ports []corev1.ServicePort `json:"ports,omitempty"`

	// ServiceType of the App's Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`

	// LivenessProbe of the container. Default: none.
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe of the container. Default: none.
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// StartupProbe of the container. Default: none.
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`

	// ServiceAccountName of the pods. Default: the default account of the namespace.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// SecurityContext of the container. Default: none, so that the image decides.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// PodSecurityContext of the pods. Default: none.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// ConfigMapRefs are ConfigMaps that the pods use. When one of them is changed or created again, the pods are replaced.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.name != '')",message="every reference needs a name"
	// +listType=map
	// +listMapKey=name
	// +optional
	ConfigMapRefs []corev1.LocalObjectReference `json:"configMapRefs,omitempty"`

	// SecretRefs are Secrets that the pods use. When one of them is changed or created again, the pods are replaced.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.name != '')",message="every reference needs a name"
	// +listType=map
	// +listMapKey=name
	// +optional
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs,omitempty"`

	// MinAvailable is the number or percentage of pods that stay while nodes are drained. If set, there is a
	// PodDisruptionBudget.
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// AppStatus is the observed state of an App: the status of the Deployment, whose fields have no schema here, and the address
// of the App. ObservedGeneration is the App's own. The conditions are the Deployment's Available, Progressing and
// ReplicaFailure, and the App's Ready, Reconciling, Stalled and ServiceReady.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AppStatus struct {
	// The API server refuses the schema that would be generated: in it, the type of a condition is optional.
	// +kubebuilder:validation:Schemaless
	appsv1.DeploymentStatus `json:",inline"`

	// Endpoint is the address within the cluster, with the first port. It is absent if the App has no Service.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Selector of the pods, as a string for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// App is a Deployment with one container, and a Service to reach it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=.spec.image
// +kubebuilder:printcolumn:name=Desired,type=integer,JSONPath=.spec.replicas
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=.status.readyReplicas
// +kubebuilder:printcolumn:name=Available,type=integer,JSONPath=.status.availableReplicas
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AppSpec `json:"spec"`
	// +optional
	Status AppStatus `json:"status,omitzero"`
}

// AppList is a list of Apps.
//
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []App `json:"items"`
}
