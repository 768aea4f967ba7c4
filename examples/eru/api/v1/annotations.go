package v1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationEru with the value "true" on a Deployment requests an Eru of the same name.
const AnnotationEru = "mtsre.meitu.com/eru"

// AnnotationLastRestart on a Deployment is when the operator last restarted it, in the format of RFC 3339. It is the time of the
// start, not the due time.
const AnnotationLastRestart = "mtsre.meitu.com/lastRestart"

// Annotations of an Eru. Each holds a field of its spec as JSON.
const (
	AnnotationDeploymentName = "mtsre.meitu.com/deploymentName"
	AnnotationEnabled        = "mtsre.meitu.com/enabled"
	AnnotationSchedule       = "mtsre.meitu.com/schedule"
)

// LabelCreatedBy with the value CreatedBy marks an Eru that a Deployment's annotation requested.
const (
	LabelCreatedBy = "mtsre.meitu.com/created-by"
	CreatedBy      = "eru-operator"
)

// SpecAnnotations returns the annotations that hold fields of the spec.
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

// IsRequested reports whether a Deployment's annotation requested the Eru, by its label.
func (e *Eru) IsRequested() bool { return e.Labels[LabelCreatedBy] == CreatedBy }

// IsLegacy reports whether the operator of the article created the Eru. That operator set the annotations and no label.
// It returns false once this operator has written the status: from then on every Eru gets the annotations.
func (e *Eru) IsLegacy() bool {
	for key := range e.SpecAnnotations() {
		if _, ok := e.Annotations[key]; !ok {
			return false
		}
	}
	return !e.HasStatus() && e.Spec.DeploymentName == e.Name
}

// HasStatus reports whether this operator has written the status: conditions of the article's operator have no type.
func (e *Eru) HasStatus() bool { return e.LastCondition().Type != "" }

// NewEru returns the Eru that a Deployment's annotation requests. It is not enabled.
func NewEru(namespace, deployment string) *Eru {
	eru := &Eru{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment, Labels: map[string]string{LabelCreatedBy: CreatedBy}},
		Spec:       EruSpec{DeploymentName: deployment, Schedule: DefaultSchedule},
	}
	eru.Annotations = eru.SpecAnnotations()
	return eru
}
