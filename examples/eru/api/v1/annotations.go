package v1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationEru asks, with the value "true", for an Eru of a Deployment's name.
const AnnotationEru = "mtsre.meitu.com/eru"

// An Eru's own annotations hold fields of its spec as JSON.
const (
	AnnotationDeploymentName = "mtsre.meitu.com/deploymentName"
	AnnotationEnabled        = "mtsre.meitu.com/enabled"
	AnnotationSchedule       = "mtsre.meitu.com/schedule"
)

// LabelCreatedBy, with the value CreatedBy, is on Erus that a Deployment's annotation asked for.
const (
	LabelCreatedBy = "mtsre.meitu.com/created-by"
	CreatedBy      = "eru-operator"
)

// SpecAnnotations are the annotations that belong to the spec.
func (e *Eru) SpecAnnotations() map[string]string {
	annotations := map[string]string{}
	for key, value := range map[string]any{
		AnnotationDeploymentName: e.Spec.DeploymentName, AnnotationEnabled: e.Spec.Enabled, AnnotationSchedule: e.Spec.Schedule,
	} {
		encoded, _ := json.Marshal(value) // a string or a bool: it cannot fail
		annotations[key] = string(encoded)
	}
	return annotations
}

// IsAskedFor says whether a Deployment's annotation asked for it, as its label tells.
func (e *Eru) IsAskedFor() bool { return e.Labels[LabelCreatedBy] == CreatedBy }

// IsFormer says whether it is one that the first published operator made, which knew no label. It can be told only as long as
// we have not written its status, since all Erus get the annotations.
func (e *Eru) IsFormer() bool {
	for key := range e.SpecAnnotations() {
		if _, ok := e.Annotations[key]; !ok {
			return false
		}
	}
	return !e.IsKnown() && e.Spec.DeploymentName == e.Name
}

// IsKnown says whether we have written its status: the first published operator's conditions have no type.
func (e *Eru) IsKnown() bool { return e.LastCondition().Type != "" }

// NewEru is what a Deployment's annotation asks for: one that waits to be enabled.
func NewEru(namespace, deployment string) *Eru {
	eru := &Eru{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment, Labels: map[string]string{LabelCreatedBy: CreatedBy}},
		Spec:       EruSpec{DeploymentName: deployment, Schedule: DefaultSchedule},
	}
	eru.Annotations = eru.SpecAnnotations()
	return eru
}
