package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

// labelApp is the tutorial's label of pods. Its value is the App's name, shortened if it is too long for a label.
const labelApp = "app.example.com/v1"

func podLabels(app *appv1.App) map[string]string {
	return map[string]string{labelApp: ownedresources.LabelValue(app.Name)}
}

// deployment returns the Deployment of an App: the Deployment of the tutorial, with what the spec adds. The pods have
// only the security context that the spec sets. configuration is the hash of what the App refers to.
func deployment(app *appv1.App, configuration string) (*appsv1.Deployment, error) {
	spec := &app.Spec
	d := ownedresources.NewDeployment(app, podLabels(app), corev1.Container{
		Name:            app.Name,
		Image:           spec.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Resources:       spec.Resources.Core(),
		Env:             lastOfEachName(spec.Envs),
		EnvFrom:         spec.EnvFrom,
		Ports:           ownedresources.ContainerPorts(spec.Ports...),
		LivenessProbe:   spec.LivenessProbe,
		ReadinessProbe:  spec.ReadinessProbe,
		StartupProbe:    spec.StartupProbe,
	})
	d.Spec.Replicas = spec.Replicas
	pod := &d.Spec.Template.Spec
	pod.ServiceAccountName = spec.ServiceAccountName
	pod.SecurityContext, pod.Containers[0].SecurityContext = spec.PodSecurityContext, spec.SecurityContext
	if configuration != "" {
		d.Spec.Template.Annotations = map[string]string{annotationConfiguration: configuration}
	}
	return d, nil
}

// lastOfEachName returns the last variable of each name. It keeps the order: a value may refer to variables before it.
func lastOfEachName(envs []corev1.EnvVar) []corev1.EnvVar {
	last := make(map[string]int, len(envs))
	for i := range envs {
		last[envs[i].Name] = i
	}
	var kept []corev1.EnvVar
	for i := range envs {
		if last[envs[i].Name] == i {
			kept = append(kept, envs[i])
		}
	}
	return kept
}
