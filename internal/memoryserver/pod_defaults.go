package memoryserver

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// defaultPodSpec fills in what pods and pod templates have in common.
func defaultPodSpec(spec *corev1.PodSpec) {
	unset(&spec.DNSPolicy, corev1.DNSClusterFirst)
	unset(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	unset(&spec.SchedulerName, corev1.DefaultSchedulerName)
	absent(&spec.SecurityContext, corev1.PodSecurityContext{})
	absent(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i].VolumeSource)
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
}

func defaultContainer(c *corev1.Container) {
	unset(&c.ImagePullPolicy, pullPolicy(c.Image))
	unset(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	unset(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		unset(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for _, env := range c.Env {
		if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil {
			unset(&env.ValueFrom.FieldRef.APIVersion, "v1")
		}
		if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
			absent(&env.ValueFrom.FileKeyRef.Optional, false)
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
}

// tagged splits an image into its name, tag and digest.
var tagged = regexp.MustCompile(`^((?:[^/@:]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::([\w][\w.-]{0,127}))?(@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?$`)

// pullPolicy pulls always what has the tag "latest" or neither tag nor digest.
func pullPolicy(image string) corev1.PullPolicy {
	parts := tagged.FindStringSubmatch(image)
	if parts != nil && (parts[2] == "latest" || parts[2] == "" && parts[3] == "") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultProbe(p *corev1.Probe) {
	unset(&p.TimeoutSeconds, 1)
	unset(&p.PeriodSeconds, 10)
	unset(&p.SuccessThreshold, 1)
	unset(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		absent(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		unset(&get.Path, "/")
		unset(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	unset(v, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	switch {
	case v.HostPath != nil:
		absent(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		absent(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		absent(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		absent(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		absent(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				defaultDownward(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				absent(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		defaultVolumeClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
	case v.Image != nil:
		unset(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for _, item := range items {
		if item.FieldRef != nil {
			unset(&item.FieldRef.APIVersion, "v1")
		}
	}
}

func defaultVolumeClaim(claim *corev1.PersistentVolumeClaimSpec) {
	absent(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(claim.Resources.Limits)
	roundUp(claim.Resources.Requests)
}

// roundUp keeps no more than thousandths of a resource.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// defaultPod fills in what pods have and pod templates have not.
func defaultPod(pod *corev1.Pod) {
	defaultPodSpec(&pod.Spec)
	alignPodIPs(&pod.Status)
	absent(&pod.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
			if pod.Spec.HostNetwork {
				useHostPorts(containers[i].Ports)
			}
		}
	}
}

// alignPodIPs makes the list of addresses follow the single one, which older kubelets write.
func alignPodIPs(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

// requestLimits requests what is limited and not requested.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; requested {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

func useHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		unset(&ports[i].HostPort, ports[i].ContainerPort)
	}
}

// admitPod is what the admission plug-ins do that are on by default. The volume with the token of
// the service account is left out.
func admitPod(pod *corev1.Pod) {
	if unset(&pod.Spec.ServiceAccountName, "default"); pod.Spec.DeprecatedServiceAccount == "" {
		pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	}
	absent(&pod.Spec.Priority, 0)
	absent(&pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	tolerateOutage(pod)
}

// tolerateOutage keeps a pod for five minutes on a node that does not answer, which a plug-in does at
// each write.
func tolerateOutage(pod *corev1.Pod) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300),
			})
		}
	}
}

func tolerates(t corev1.Toleration, taint string) bool {
	return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
}

// qualityOfService is the class that decides which pods go first when a node has no room.
func qualityOfService(pod *corev1.Pod) corev1.PodQOSClass {
	some, guaranteed := false, true
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, requested := c.Resources.Requests[name]
			limit, limited := c.Resources.Limits[name]
			some = some || requested && !request.IsZero() || limited && !limit.IsZero()
			guaranteed = guaranteed && limited && !limit.IsZero() && (!requested || request.Cmp(limit) == 0)
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
