package builtin

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// defaultPodSpec sets the defaults that both pods and pod templates get.
func defaultPodSpec(spec *corev1.PodSpec) {
	setIfZero(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setIfZero(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setIfZero(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setIfNil(&spec.SecurityContext, corev1.PodSecurityContext{})
	setIfNil(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
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
	roundUpToMilli(spec.Overhead)
	if spec.Resources != nil {
		roundUpToMilli(spec.Resources.Limits)
		roundUpToMilli(spec.Resources.Requests)
	}
}

func defaultContainer(c *corev1.Container) {
	setIfZero(&c.ImagePullPolicy, pullPolicy(c.Image))
	setIfZero(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setIfZero(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setIfZero(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for _, env := range c.Env {
		if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil {
			setIfZero(&env.ValueFrom.FieldRef.APIVersion, "v1")
		}
		if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
			setIfNil(&env.ValueFrom.FileKeyRef.Optional, false)
		}
	}
	roundUpToMilli(c.Resources.Limits)
	roundUpToMilli(c.Resources.Requests)
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

// imagePattern has groups for the name, the tag and the digest of an image.
var imagePattern = regexp.MustCompile(`^((?:[^/@:]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::([\w][\w.-]{0,127}))?(@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?$`)

// pullPolicy returns Always for the tag "latest", and for an image with neither a tag nor a digest. Otherwise it returns IfNotPresent.
func pullPolicy(image string) corev1.PullPolicy {
	parts := imagePattern.FindStringSubmatch(image)
	if parts != nil && (parts[2] == "latest" || parts[2] == "" && parts[3] == "") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultProbe(p *corev1.Probe) {
	setIfZero(&p.TimeoutSeconds, 1)
	setIfZero(&p.PeriodSeconds, 10)
	setIfZero(&p.SuccessThreshold, 1)
	setIfZero(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setIfNil(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		setIfZero(&get.Path, "/")
		setIfZero(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	setIfZero(v, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	switch {
	case v.HostPath != nil:
		setIfNil(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		setIfNil(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setIfNil(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setIfNil(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardAPI(v.DownwardAPI.Items)
	case v.Projected != nil:
		setIfNil(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				defaultDownwardAPI(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				setIfNil(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		defaultVolumeClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
	case v.Image != nil:
		setIfZero(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
}

func defaultDownwardAPI(items []corev1.DownwardAPIVolumeFile) {
	for _, item := range items {
		if item.FieldRef != nil {
			setIfZero(&item.FieldRef.APIVersion, "v1")
		}
	}
}

func defaultVolumeClaim(claim *corev1.PersistentVolumeClaimSpec) {
	setIfNil(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUpToMilli(claim.Resources.Limits)
	roundUpToMilli(claim.Resources.Requests)
}

// roundUpToMilli rounds quantities up to thousandths.
func roundUpToMilli(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// defaultPod sets the defaults of pods. Pod templates have fewer defaults.
func defaultPod(pod *corev1.Pod) {
	defaultPodSpec(&pod.Spec)
	normalizePodIPs(&pod.Status)
	setIfNil(&pod.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources)
			if pod.Spec.HostNetwork {
				defaultHostPorts(containers[i].Ports)
			}
		}
	}
}

// normalizePodIPs makes podIP and podIPs agree. If both are set and differ, it takes podIP, since older kubelets write only podIP.
func normalizePodIPs(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

// defaultRequests sets the requests of resources that have only a limit.
func defaultRequests(r *corev1.ResourceRequirements) {
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

func defaultHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		setIfZero(&ports[i].HostPort, ports[i].ContainerPort)
	}
}

// admitPod does what the default admission plug-ins do. It does not add the volume with the token of the service account.
func admitPod(pod *corev1.Pod) {
	if setIfZero(&pod.Spec.ServiceAccountName, "default"); pod.Spec.DeprecatedServiceAccount == "" {
		pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	}
	setIfNil(&pod.Spec.Priority, 0)
	setIfNil(&pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	addOutageTolerations(pod)
}

// addOutageTolerations adds tolerations with which a pod stays for five minutes on a node that does not respond. In a real cluster an
// admission plug-in adds them at each write.
func addOutageTolerations(pod *corev1.Pod) {
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

// qosClass returns the class by which the kubelet chooses the pods to evict when a node has too few resources.
func qosClass(pod *corev1.Pod) corev1.PodQOSClass {
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
