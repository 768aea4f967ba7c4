package blog_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Blog is a web application that stores its data in the volumes of its pods.
type Blog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   BlogSpec   `json:"spec,omitzero"`
	Status BlogStatus `json:"status,omitzero"`
}

type BlogSpec struct {
	Version  string `json:"version"`
	Replicas int32  `json:"replicas"`
	Host     string `json:"host"`
	Title    string `json:"title,omitempty"`
}

type BlogStatus struct {
	MigratedVersion string             `json:"migratedVersion,omitempty"` // the version to which the data was migrated
	ReadyReplicas   int32              `json:"readyReplicas,omitempty"`
	Conditions      []metav1.Condition `json:"conditions,omitempty"`
}

type BlogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Blog `json:"items"`
}

func (b *Blog) DeepCopy() *Blog {
	made := *b
	b.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &made
}

func (b *Blog) DeepCopyObject() runtime.Object { return b.DeepCopy() }

func (l *BlogList) DeepCopyObject() runtime.Object {
	made := &BlogList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopy())
	}
	return made
}

// newScheme returns the types that the operator uses.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s.AddKnownTypes(version, &Blog{}, &BlogList{})
	metav1.AddToGroupVersion(s, version)
	return s, clientgoscheme.AddToScheme(s)
}
