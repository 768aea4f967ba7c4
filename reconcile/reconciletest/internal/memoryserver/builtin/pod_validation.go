package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodTemplate finds the mistakes that operators make in pod templates. The real server validates many more
// fields.
func validatePodTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	return append(errs, validatePodSpec(&template.Spec, path.Child("spec"))...)
}

func validatePodSpec(spec *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	volumes := sets.Set[string]{}
	for i, v := range spec.Volumes {
		at := path.Child("volumes").Index(i).Child("name")
		wrong := append(validateVolume(&v.VolumeSource, path.Child("volumes").Index(i)), validateLabelName(v.Name, at)...)
		if volumes.Has(v.Name) {
			wrong = append(wrong, field.Duplicate(at, v.Name))
		}
		if errs = append(errs, wrong...); len(wrong) == 0 {
			volumes.Insert(v.Name) // only valid volumes can be mounted
		}
	}
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	names := sets.Set[string]{}
	errs = append(errs, validateContainers(spec.Containers, volumes, names, path.Child("containers"))...)
	errs = append(errs, validateContainers(spec.InitContainers, volumes, names, path.Child("initContainers"))...)
	switch spec.RestartPolicy {
	case corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	default:
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	}
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	if spec.ServiceAccountName != "" {
		for _, message := range validation.ValidateServiceAccountName(spec.ServiceAccountName, false) {
			errs = append(errs, field.Invalid(path.Child("serviceAccountName"), spec.ServiceAccountName, message))
		}
	}
	return errs
}

func validateVolume(v *corev1.VolumeSource, path *field.Path) field.ErrorList {
	required := func(value string, names ...string) field.ErrorList {
		if value != "" {
			return nil
		}
		return field.ErrorList{field.Required(path.Child(names[0], names[1:]...), "")}
	}
	switch {
	case v.Secret != nil:
		return required(v.Secret.SecretName, "secret", "secretName")
	case v.ConfigMap != nil:
		return required(v.ConfigMap.Name, "configMap", "name")
	case v.HostPath != nil:
		return required(v.HostPath.Path, "hostPath", "path")
	case v.PersistentVolumeClaim != nil:
		return required(v.PersistentVolumeClaim.ClaimName, "persistentVolumeClaim", "claimName")
	}
	return nil
}

func validateContainers(containers []corev1.Container, volumes, names sets.Set[string], path *field.Path) (errs field.ErrorList) {
	for i := range containers {
		c, at := &containers[i], path.Index(i)
		errs = append(errs, validateLabelName(c.Name, at.Child("name"))...)
		if c.Image == "" {
			errs = append(errs, field.Required(at.Child("image"), ""))
		}
		errs = append(errs, validateContainerPorts(c.Ports, at.Child("ports"))...)
		errs = append(errs, validateEnvironment(c.Env, at.Child("env"))...)
		errs = append(errs, validateVolumeMounts(c.VolumeMounts, volumes, at.Child("volumeMounts"))...)
		switch c.ImagePullPolicy {
		case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		default:
			errs = append(errs, field.NotSupported(at.Child("imagePullPolicy"), c.ImagePullPolicy,
				[]corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}))
		}
		errs = append(errs, validateResources(c.Resources, at.Child("resources"))...)
		if names.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names.Insert(c.Name)
	}
	return errs
}

func validateLabelName(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, message := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, message).WithOrigin("format=k8s-short-name"))
	}
	return errs
}

func validateContainerPorts(ports []corev1.ContainerPort, path *field.Path) (errs field.ErrorList) {
	names := sets.Set[string]{}
	for i, port := range ports {
		at := path.Index(i)
		if port.Name != "" {
			for _, message := range utilvalidation.IsValidPortName(port.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), port.Name, message))
			}
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, validatePort(port.ContainerPort, at.Child("containerPort"))...)
		}
		if port.HostPort != 0 {
			errs = append(errs, validatePort(port.HostPort, at.Child("hostPort"))...)
		}
		errs = append(errs, validateProtocol(port.Protocol, at.Child("protocol"))...)
	}
	return errs
}

func validatePort(port int32, path *field.Path) (errs field.ErrorList) {
	for _, message := range utilvalidation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, message))
	}
	return errs
}

var protocols = sets.New(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)

func validateProtocol(protocol corev1.Protocol, path *field.Path) field.ErrorList {
	if protocols.Has(protocol) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, protocol, sets.List(protocols))}
}

func validateEnvironment(vars []corev1.EnvVar, path *field.Path) (errs field.ErrorList) {
	for i, v := range vars {
		at := path.Index(i)
		if v.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			for _, message := range utilvalidation.IsRelaxedEnvVarName(v.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), v.Name, message))
			}
		}
		if v.ValueFrom != nil && v.Value != "" {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
		}
	}
	return errs
}

func validateVolumeMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], path *field.Path) (errs field.ErrorList) {
	paths := sets.Set[string]{}
	for i, mount := range mounts {
		at := path.Index(i)
		if mount.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if !volumes.Has(mount.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), mount.Name))
		}
		if mount.MountPath == "" {
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		}
		if paths.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		paths.Insert(mount.MountPath)
	}
	return errs
}

func validateResources(r corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	for name, request := range r.Requests {
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}
