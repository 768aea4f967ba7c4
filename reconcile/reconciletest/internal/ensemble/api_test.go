package ensemble_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Ensemble is a replicated store whose members know each other.
type Ensemble struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   EnsembleSpec   `json:"spec,omitzero"`
	Status EnsembleStatus `json:"status,omitzero"`
}

type EnsembleSpec struct {
	Size    int    `json:"size"`
	Version string `json:"version"`
}

type EnsembleStatus struct {
	Members    []string           `json:"members,omitempty"` // the members that are registered in the store
	Ready      int                `json:"ready,omitempty"`   // the number of members with a ready pod of the wanted version
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (s *EnsembleStatus) DeepCopy() *EnsembleStatus {
	return &EnsembleStatus{Members: slices.Clone(s.Members), Ready: s.Ready, Conditions: slices.Clone(s.Conditions)}
}

type EnsembleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Ensemble `json:"items"`
}

func (e *Ensemble) DeepCopy() *Ensemble {
	made := *e
	e.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Status = *e.Status.DeepCopy()
	return &made
}

func (e *Ensemble) DeepCopyObject() runtime.Object { return e.DeepCopy() }

func (l *EnsembleList) DeepCopyObject() runtime.Object {
	made := &EnsembleList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopy())
	}
	return made
}

// newScheme returns the types that the operator uses.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s.AddKnownTypes(version, &Ensemble{}, &EnsembleList{})
	metav1.AddToGroupVersion(s, version)
	return s, clientgoscheme.AddToScheme(s)
}
