package v1

import (
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
	Resources ResourceRequirements `json:"resources,omitzero"`

	// Envs of the container. If several have the same name, the last one counts.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || !has(e.valueFrom.resourceFieldRef) || !has(e.valueFrom.resourceFieldRef.divisor) || type(e.valueFrom.resourceFieldRef.divisor) == int || e.valueFrom.resourceFieldRef.divisor in ['0', '1', '1m', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'])",message="every divisor must be 0, 1, 1m, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi or 1Ei"
	// +listType=atomic
	// +optional
	Envs []corev1.EnvVar `json:"envs,omitempty"`

	// EnvFrom adds all keys of a ConfigMap or Secret to the environment of the container.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Ports of the App's Service. Without ports there is no Service. If there are several, those without a name are named
	// <protocol>-<port>. The container opens their targetPort: a number as it is; for a name, the port with this name.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.port >= 1 && p.port <= 65535)",message="every port must be from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.targetPort) || type(p.targetPort) == string || (p.targetPort >= 0 && p.targetPort <= 65535))",message="every targetPort must be a name, or a number up to 65535"
	// +listType=atomic
	// +optional
	Ports []corev1.ServicePort `json:"ports,omitempty"`

	// ServiceType of the App's Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`

	// LivenessProbe of the container. Default: none.
	// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || type(self.httpGet.port) == string || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)",fieldPath=".httpGet.port",message="must be a name, or a number from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!has(self.tcpSocket) || type(self.tcpSocket.port) == string || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535)",fieldPath=".tcpSocket.port",message="must be a name, or a number from 1 to 65535"
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe of the container. Default: none.
	// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || type(self.httpGet.port) == string || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)",fieldPath=".httpGet.port",message="must be a name, or a number from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!has(self.tcpSocket) || type(self.tcpSocket.port) == string || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535)",fieldPath=".tcpSocket.port",message="must be a name, or a number from 1 to 65535"
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// StartupProbe of the container. Default: none.
	// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || type(self.httpGet.port) == string || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)",fieldPath=".httpGet.port",message="must be a name, or a number from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!has(self.tcpSocket) || type(self.tcpSocket.port) == string || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535)",fieldPath=".tcpSocket.port",message="must be a name, or a number from 1 to 65535"
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
	// +kubebuilder:validation:XValidation:rule="type(self) == string || (self >= 0 && self <= 2147483647)",message="must be a percentage, or a number from 0 to 2147483647"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// AppStatus is the observed state of an App: the status of the Deployment, and the address of the App. ObservedGeneration is
// the App's own. The conditions are the Deployment's Available, Progressing and ReplicaFailure, and the App's Ready,
// Reconciling, Stalled and ServiceReady.
type AppStatus struct {
	DeploymentStatus `json:",inline"`

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
