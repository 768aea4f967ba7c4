package controller

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

// labelApp on the pods holds the App's name; shortened when that is too long for a label. It is the tutorial's.
const labelApp = "app.example.com/v1"

func podLabels(app *appv1.App) map[string]string {
	return map[string]string{labelApp: ownedresources.LabelValue(app.Name)}
}

// deployment is as the tutorial made it, with what the spec adds. Its pods have no security context but the spec's.
func deployment(app *appv1.App) *appsv1.Deployment {
	spec := &app.Spec
	d := ownedresources.NewDeployment(app, podLabels(app), corev1.Container{
		Name:            app.Name,
		Image:           spec.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Resources:       spec.Resources,
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
	if mark, used := app.Annotations[annotationConfiguration]; used {
		d.Spec.Template.Annotations = map[string]string{annotationConfiguration: mark}
	}
	return d
}

// lastOfEachName keeps the order, which counts: a value may refer to variables before it.
func lastOfEachName(envs []corev1.EnvVar) []corev1.EnvVar {
	var kept []corev1.EnvVar
	for i, env := range envs {
		if !slices.ContainsFunc(envs[i+1:], func(later corev1.EnvVar) bool { return later.Name == env.Name }) {
			kept = append(kept, env)
		}
	}
	return kept
}

func disruptionBudget(app *appv1.App) *policyv1.PodDisruptionBudget {
	if app.Spec.MinAvailable == nil {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: ownedresources.NewService(app, podLabels(app)).ObjectMeta, // name and recommended labels
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: app.Spec.MinAvailable,
			Selector:     &metav1.LabelSelector{MatchLabels: podLabels(app)},
		},
	}
}
