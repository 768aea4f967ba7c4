package reconciletest_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Shop is the custom resource of the operators that are tested here; testdata has its definition.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ShopSpec   `json:"spec,omitzero"`
	Status            ShopStatus `json:"status,omitzero"`
}

type ShopSpec struct {
	Replicas int32    `json:"replicas,omitempty"`
	Motto    string   `json:"motto,omitempty"`
	Counters []string `json:"counters,omitempty"`
}

type ShopStatus struct {
	Phase    string       `json:"phase,omitempty"`
	Message  string       `json:"message,omitempty"`
	Account  string       `json:"account,omitempty"`
	Slot     int          `json:"slot,omitempty"`
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
	Nodes    []string     `json:"nodes,omitempty"`

	LastJob *corev1.ObjectReference `json:"lastJob,omitempty"`

	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Shop `json:"items"`
}

func (s *Shop) DeepCopyObject() runtime.Object {
	made := *s
	s.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Spec.Counters, made.Status.Nodes = slices.Clone(s.Spec.Counters), slices.Clone(s.Status.Nodes)
	if s.Status.LastJob != nil {
		made.Status.LastJob = s.Status.LastJob.DeepCopy()
	}
	made.Status.LastSeen, made.Status.Conditions = s.Status.LastSeen.DeepCopy(), slices.Clone(s.Status.Conditions)
	return &made
}

func (l *ShopList) DeepCopyObject() runtime.Object {
	made := &ShopList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*Shop))
	}
	return made
}

var (
	shopVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme      = newScheme()
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	s.AddKnownTypes(shopVersion, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s, shopVersion)
	return s
}

// shop returns the shop that most scenarios have.
func shop(edit ...func(*Shop)) *Shop {
	s := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for _, e := range edit {
		e(s)
	}
	return s
}

// config returns a ConfigMap of the name, without data.
func config(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}
